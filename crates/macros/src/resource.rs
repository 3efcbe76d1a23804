//! A method that is a resource, or a resource template.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItemFn, LitStr, Result};

use crate::method::{Method, options_of};
use crate::options::docs;

const KNOWN: [&str; 5] = ["uri", "name", "title", "description", "mime_type"];
const EXAMPLE: &str = "#[resource(uri = \"orders://{id}\")]";

/// A resource, as its method and attribute describe it.
pub(crate) struct ResourceMethod {
    pub(crate) uri: LitStr,
    name: String,
    settings: Vec<TokenStream>,
    method: Method,
}

impl ResourceMethod {
    pub(crate) fn read(attribute: &Attribute, method: &mut ImplItemFn) -> Result<Self> {
        let mut settings = Vec::new();
        if let Some(text) = docs(&method.attrs) {
            settings.push(quote!(.description(#text)));
        }
        let mut name = method.sig.ident.unraw().to_string();
        let mut uri = None;
        for entry in options_of(attribute, EXAMPLE)? {
            let text = || entry.text();
            match entry.name.to_string().as_str() {
                "uri" => uri = Some(text()?),
                "name" => name = text()?.value(),
                "title" => settings.push(text().map(|text| quote!(.title(#text)))?),
                "description" => settings.push(text().map(|text| quote!(.description(#text)))?),
                "mime_type" => settings.push(text().map(|text| quote!(.mime_type(#text)))?),
                _ => return Err(entry.unknown(&KNOWN)),
            }
        }
        let Some(uri) = uri else {
            let problem = format!("where is it? write `{EXAMPLE}`");
            return Err(Error::new(attribute.span(), problem));
        };
        let read = Method::read(method, "a resource")?;
        if method.sig.asyncness.is_none() {
            let problem = "a resource is an `async fn`";
            return Err(Error::new(method.sig.fn_token.span(), problem));
        }
        check_variables(&uri, &read)?;
        Ok(Self {
            uri,
            name,
            settings,
            method: read,
        })
    }

    /// An expression that adds this resource to `server`.
    pub(crate) fn add(&self) -> TokenStream {
        let Self {
            uri,
            name,
            settings,
            ..
        } = self;
        let call = self.method.call();
        if self.method.arguments().next().is_none() {
            return quote! {{
                let this = ::std::sync::Arc::clone(&this);
                server.resource(
                    ::belay::Resource::new(#uri, #name, move |cx: ::belay::Context| {
                        let this = ::std::sync::Arc::clone(&this);
                        async move {
                            let _ = (&this, &cx);
                            #call.await
                        }
                    })
                    #(#settings)*
                )
            }};
        }
        let arguments = self.method.arguments_type();
        quote! {{
            #arguments
            let this = ::std::sync::Arc::clone(&this);
            server.resource_template(
                ::belay::ResourceTemplate::new(
                    #uri,
                    #name,
                    move |cx: ::belay::Context, arguments: __BelayArguments| {
                        let this = ::std::sync::Arc::clone(&this);
                        async move {
                            let _ = (&this, &cx, &arguments);
                            #call.await
                        }
                    },
                )
                #(#settings)*
            )
        }}
    }
}

/// Checks that the variables in braces in the URI and the arguments are the same.
fn check_variables(uri: &LitStr, method: &Method) -> Result<()> {
    let text = uri.value();
    let inside = text
        .split('{')
        .skip(1)
        .filter_map(|rest| rest.split_once('}'));
    let variables: Vec<&str> = inside
        .flat_map(|(inside, _)| inside.trim_start_matches(['+', '?']).split(','))
        .collect();
    let arguments: Vec<String> = method
        .arguments()
        .map(|name| name.unraw().to_string())
        .collect();
    for variable in &variables {
        if !arguments.iter().any(|name| name == variable) {
            let problem = format!("`{{{variable}}}` is no argument of this method");
            return Err(Error::new(uri.span(), problem));
        }
    }
    for argument in method.arguments() {
        let name = argument.unraw().to_string();
        if !variables.contains(&name.as_str()) {
            let problem = format!("`{name}` does not stand in the URI: write `{{{name}}}` there");
            return Err(Error::new(argument.span(), problem));
        }
    }
    Ok(())
}
