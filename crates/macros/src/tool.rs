//! One method that is a tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, ImplItemFn, Meta, Pat, Result, ReturnType, Type};

use crate::options::{self, Entry, docs, last_word, written};

const KNOWN: [&str; 11] = [
    "name",
    "title",
    "description",
    "grace",
    "timeout",
    "concurrency",
    "blocking",
    "read_only",
    "destructive",
    "idempotent",
    "open_world",
];

/// What a method says about the tool it is.
pub(crate) struct ToolMethod {
    method: Ident,
    pub(crate) name: String,
    /// Calls on the builder, one for each option.
    settings: Vec<TokenStream>,
    blocking: bool,
    takes_self: bool,
    parameters: Vec<Parameter>,
    output: TokenStream,
}

enum Parameter {
    Context { by_reference: bool },
    Argument { name: Ident },
}

/// Takes the attribute off a method, if there is one.
pub(crate) fn take_attribute(method: &mut ImplItemFn) -> Option<Attribute> {
    let is_tool = |attribute: &Attribute| {
        let last = attribute.path().segments.last();
        last.is_some_and(|segment| segment.ident == "tool")
    };
    let position = method.attrs.iter().position(is_tool)?;
    Some(method.attrs.remove(position))
}

/// Takes the attributes that belong to a field of the arguments.
fn take_field_attributes(attributes: &mut Vec<Attribute>) -> Result<Vec<Attribute>> {
    let is = |attribute: &Attribute, name: &str| attribute.path().is_ident(name);
    if let Some(cfg) = attributes
        .iter()
        .find(|it| is(it, "cfg") || is(it, "cfg_attr"))
    {
        let problem = "an argument is there or it is not; put `#[cfg]` on two methods instead";
        return Err(Error::new(cfg.span(), problem));
    }
    let (taken, left) = std::mem::take(attributes)
        .into_iter()
        .partition(|it| is(it, "doc") || is(it, "serde") || is(it, "schemars"));
    *attributes = left;
    Ok(taken)
}

/// One argument of a tool, as a field.
struct Field {
    attributes: Vec<Attribute>,
    name: Ident,
    kind: Type,
}

impl ToolMethod {
    /// Reads a method; what is not Rust (attributes on its parameters) is taken off it. Gives the
    /// tool, and the fields of its arguments.
    pub(crate) fn read(
        attribute: &Attribute,
        method: &mut ImplItemFn,
    ) -> Result<(Self, TokenStream)> {
        let entries = match &attribute.meta {
            Meta::Path(_) => Vec::new(),
            Meta::List(list) => options::parse(list.tokens.clone())?,
            Meta::NameValue(pair) => {
                let problem = "options stand in parentheses: `#[tool(grace = \"1s\")]`";
                return Err(Error::new(pair.span(), problem));
            }
        };
        let mut settings = Vec::new();
        if let Some(text) = docs(&method.attrs) {
            settings.push(quote!(.description(#text)));
        }
        let mut name = method.sig.ident.unraw().to_string();
        let mut blocking = false;
        for entry in &entries {
            match entry.name.to_string().as_str() {
                "name" => name = entry.text()?.value(),
                "blocking" => blocking = entry.flag()?,
                _ => settings.push(setting(entry)?),
            }
        }
        check_signature(method, blocking)?;
        let output = match &method.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, kind) if matches!(**kind, Type::ImplTrait(_)) => {
                let problem = "the result of a tool has a name, which its schema is made from";
                return Err(Error::new(kind.span(), problem));
            }
            ReturnType::Type(_, kind) => quote!(#kind),
        };
        let mut tool = Self {
            method: method.sig.ident.clone(),
            name,
            settings,
            blocking,
            takes_self: false,
            parameters: Vec::new(),
            output,
        };
        let mut fields = Vec::new();
        for input in &mut method.sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    if receiver.reference.is_none() || receiver.mutability.is_some() {
                        let problem = "many calls of a tool run at once, so it takes `&self`";
                        return Err(Error::new(receiver.span(), problem));
                    }
                    tool.takes_self = true;
                }
                FnArg::Typed(typed) => {
                    let attributes = take_field_attributes(&mut typed.attrs)?;
                    if last_word(&typed.ty).as_deref() == Some("Context") {
                        let by_reference = matches!(*typed.ty, Type::Reference(_));
                        tool.parameters.push(Parameter::Context { by_reference });
                        continue;
                    }
                    let field = field(typed, attributes)?;
                    let name = field.name.clone();
                    tool.parameters.push(Parameter::Argument { name });
                    fields.push(field);
                }
            }
        }
        Ok((tool, fields.iter().map(Field::tokens).collect()))
    }

    /// An expression that adds this tool to `server`.
    pub(crate) fn add(&self, fields: &TokenStream) -> TokenStream {
        let Self {
            method,
            name,
            settings,
            output,
            ..
        } = self;
        let arguments = self.parameters.iter().map(|parameter| match parameter {
            Parameter::Context { by_reference: true } => quote!(&cx),
            Parameter::Context { .. } => quote!(cx.clone()),
            Parameter::Argument { name } => quote!(arguments.#name),
        });
        let receiver = self.takes_self.then(|| quote!(&this,));
        let call = quote!(Self::#method(#receiver #(#arguments),*));
        let span = output.span();
        let produced = quote_spanned!(span=> (&&&::belay::macros::Produced::new(output)).produce());
        let schema = quote_spanned! {span=>
            (&&&::belay::macros::Produced::<#output>::none()).output_schema()
        };
        let handler = match self.blocking {
            true => quote! {
                ::belay::Tool::blocking(#name, move |cx: ::belay::Context, arguments: __BelayArguments| {
                    let _ = &arguments;
                    let output = #call;
                    #produced
                })
            },
            false => quote! {
                ::belay::Tool::new(#name, move |cx: ::belay::Context, arguments: __BelayArguments| {
                    let this = ::std::sync::Arc::clone(&this);
                    async move {
                        let _ = (&this, &cx, &arguments);
                        let output = #call.await;
                        #produced
                    }
                })
            },
        };
        quote! {{
            #[derive(
                ::belay::macros::serde::Deserialize,
                ::belay::macros::schemars::JsonSchema,
            )]
            #[serde(crate = "::belay::macros::serde")]
            #[schemars(crate = "::belay::macros::schemars")]
            struct __BelayArguments { #fields }
            #[allow(unused_imports)]
            use ::belay::macros::{ViaContent as _, ViaResult as _, ViaStructured as _};
            let this = ::std::sync::Arc::clone(&this);
            server.tool(#handler #(#settings)*.maybe_output_schema(#schema))
        }}
    }
}

fn setting(entry: &Entry) -> Result<TokenStream> {
    let hint = |field: &str| {
        let field = format_ident!("{field}");
        let flag = entry.flag()?;
        let set = quote!(.annotations(|hints| hints.#field = ::core::option::Option::Some(#flag)));
        Ok(set)
    };
    match entry.name.to_string().as_str() {
        "title" => entry.text().map(|text| quote!(.title(#text))),
        "description" => entry.text().map(|text| quote!(.description(#text))),
        "grace" => entry.duration().map(|grace| quote!(.grace(#grace))),
        "timeout" => entry.duration().map(|timeout| quote!(.timeout(#timeout))),
        "concurrency" => entry.count().map(|limit| quote!(.concurrency(#limit))),
        "read_only" => hint("read_only_hint"),
        "destructive" => hint("destructive_hint"),
        "idempotent" => hint("idempotent_hint"),
        "open_world" => hint("open_world_hint"),
        _ => Err(entry.unknown(&KNOWN)),
    }
}

fn check_signature(method: &ImplItemFn, blocking: bool) -> Result<()> {
    let signature = &method.sig;
    if !signature.generics.params.is_empty() {
        let problem =
            "a tool has no generic parameters: its schema needs one type for each argument";
        return Err(Error::new(signature.generics.span(), problem));
    }
    match (signature.asyncness, blocking) {
        (Some(token), true) => {
            let problem = "a blocking tool is a plain `fn`; leave out `async`, or `blocking`";
            Err(Error::new(token.span(), problem))
        }
        (None, false) => {
            let problem =
                "a tool is an `async fn`; if it blocks its thread, write `#[tool(blocking)]`";
            Err(Error::new(signature.fn_token.span(), problem))
        }
        _ => Ok(()),
    }
}

fn field(typed: &syn::PatType, attributes: Vec<Attribute>) -> Result<Field> {
    let Pat::Ident(pattern) = &*typed.pat else {
        let problem = "an argument needs a name, since callers use it: write `name: Type`";
        return Err(Error::new(typed.pat.span(), problem));
    };
    if let Type::Reference(reference) = &*typed.ty {
        let owned = match written(&reference.elem).as_str() {
            "str" => "String".to_owned(),
            other => other.to_owned(),
        };
        let name = &pattern.ident;
        let problem = format!("an argument is owned by its call: write `{name}: {owned}`");
        return Err(Error::new(typed.ty.span(), problem));
    }
    if let Type::ImplTrait(kind) = &*typed.ty {
        let problem = "an argument has one type, which its schema is made from; `impl` is any";
        return Err(Error::new(kind.span(), problem));
    }
    Ok(Field {
        attributes,
        name: pattern.ident.clone(),
        kind: (*typed.ty).clone(),
    })
}

impl Field {
    fn tokens(&self) -> TokenStream {
        let Self {
            attributes,
            name,
            kind,
        } = self;
        quote!(#(#attributes)* #name: #kind,)
    }
}
