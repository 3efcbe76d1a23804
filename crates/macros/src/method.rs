//! What tools, prompts and resources have in common: reading a method and calling it.

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Attribute, Error, FnArg, Ident, ImplItemFn, Meta, Pat, Result, Type};

use crate::options::{self, Entry, last_word, written};

/// A method that handles a request.
pub(crate) struct Method {
    ident: Ident,
    takes_self: bool,
    parameters: Vec<Parameter>,
    fields: Vec<Field>,
}

enum Parameter {
    Context { by_reference: bool },
    Argument { name: Ident },
}

/// An argument of the method, as a field of the arguments type.
struct Field {
    attributes: Vec<Attribute>,
    name: Ident,
    kind: Type,
}

/// Removes the attribute of this name from a method, if there is one.
pub(crate) fn take_attribute(method: &mut ImplItemFn, name: &str) -> Option<Attribute> {
    let is_it = |attribute: &Attribute| {
        let last = attribute.path().segments.last();
        last.is_some_and(|segment| segment.ident == name)
    };
    let position = method.attrs.iter().position(is_it)?;
    Some(method.attrs.remove(position))
}

/// Removes everything that only the macros understand, after a mistake in one of the methods.
pub(crate) fn clean(method: &mut ImplItemFn) {
    for name in ["tool", "prompt", "resource"] {
        let _ = take_attribute(method, name);
    }
    for input in &mut method.sig.inputs {
        if let FnArg::Typed(typed) = input {
            typed.attrs.clear();
        }
    }
}

/// The options in the parentheses of an attribute.
pub(crate) fn options_of(attribute: &Attribute, example: &str) -> Result<Vec<Entry>> {
    match &attribute.meta {
        Meta::Path(_) => Ok(Vec::new()),
        Meta::List(list) => options::parse(list.tokens.clone()),
        Meta::NameValue(pair) => {
            let problem = format!("options stand in parentheses: `{example}`");
            Err(Error::new(pair.span(), problem))
        }
    }
}

impl Method {
    /// Reads a method, and removes the attributes of its parameters, which Rust does not allow.
    /// `what` names the kind of method in errors, as in "a tool".
    pub(crate) fn read(method: &mut ImplItemFn, what: &str) -> Result<Self> {
        let signature = &method.sig;
        if !signature.generics.params.is_empty() {
            let problem = format!(
                "{what} has no generic parameters: its schema needs one type for each argument"
            );
            return Err(Error::new(signature.generics.span(), problem));
        }
        let mut read = Self {
            ident: method.sig.ident.clone(),
            takes_self: false,
            parameters: Vec::new(),
            fields: Vec::new(),
        };
        for input in &mut method.sig.inputs {
            match input {
                FnArg::Receiver(receiver) => {
                    if receiver.reference.is_none() || receiver.mutability.is_some() {
                        let problem =
                            format!("many calls of {what} run at once, so it takes `&self`");
                        return Err(Error::new(receiver.span(), problem));
                    }
                    read.takes_self = true;
                }
                FnArg::Typed(typed) => {
                    let attributes = take_field_attributes(&mut typed.attrs)?;
                    if last_word(&typed.ty).as_deref() == Some("Context") {
                        let by_reference = matches!(*typed.ty, Type::Reference(_));
                        read.parameters.push(Parameter::Context { by_reference });
                        continue;
                    }
                    let field = field(typed, attributes)?;
                    let name = field.name.clone();
                    read.parameters.push(Parameter::Argument { name });
                    read.fields.push(field);
                }
            }
        }
        Ok(read)
    }

    /// The names of the arguments.
    pub(crate) fn arguments(&self) -> impl Iterator<Item = &Ident> {
        self.fields.iter().map(|field| &field.name)
    }

    /// An expression that calls the method. It uses `this`, `cx` and `arguments`.
    pub(crate) fn call(&self) -> TokenStream {
        let method = &self.ident;
        let arguments = self.parameters.iter().map(|parameter| match parameter {
            Parameter::Context { by_reference: true } => quote!(&cx),
            Parameter::Context { .. } => quote!(cx.clone()),
            Parameter::Argument { name } => quote!(arguments.#name),
        });
        let receiver = self.takes_self.then(|| quote!(&this,));
        quote!(Self::#method(#receiver #(#arguments),*))
    }

    /// A type for the arguments.
    pub(crate) fn arguments_type(&self) -> TokenStream {
        let fields = self.fields.iter().map(Field::tokens);
        quote! {
            #[derive(
                ::belay::macros::serde::Deserialize,
                ::belay::macros::schemars::JsonSchema,
            )]
            #[serde(crate = "::belay::macros::serde")]
            #[schemars(crate = "::belay::macros::schemars")]
            struct __BelayArguments { #(#fields)* }
        }
    }
}

/// Removes the attributes that belong on a field of the arguments type.
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
