//! A method that is a tool.

use proc_macro2::TokenStream;
use quote::{format_ident, quote, quote_spanned};
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItemFn, Result, ReturnType, Type};

use crate::method::{Method, options_of};
use crate::options::{Entry, docs};

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

/// A tool, as its method and attribute describe it.
pub(crate) struct ToolMethod {
    pub(crate) name: String,
    /// Method calls on the builder, one for each option.
    settings: Vec<TokenStream>,
    blocking: bool,
    output: TokenStream,
    method: Method,
}

impl ToolMethod {
    pub(crate) fn read(attribute: &Attribute, method: &mut ImplItemFn) -> Result<Self> {
        let entries = options_of(attribute, "#[tool(grace = \"1s\")]")?;
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
        let read = Method::read(method, "a tool")?;
        check_async(method, blocking)?;
        let output = match &method.sig.output {
            ReturnType::Default => quote!(()),
            ReturnType::Type(_, kind) if matches!(**kind, Type::ImplTrait(_)) => {
                let problem = "the result of a tool has a name, which its schema is made from";
                return Err(Error::new(kind.span(), problem));
            }
            ReturnType::Type(_, kind) => quote!(#kind),
        };
        Ok(Self {
            name,
            settings,
            blocking,
            output,
            method: read,
        })
    }

    /// An expression that adds this tool to `server`.
    pub(crate) fn add(&self) -> TokenStream {
        let Self {
            name,
            settings,
            output,
            ..
        } = self;
        let call = self.method.call();
        let arguments = self.method.arguments_type();
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
            #arguments
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

fn check_async(method: &ImplItemFn, blocking: bool) -> Result<()> {
    let signature = &method.sig;
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
