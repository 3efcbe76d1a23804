//! A method that is a prompt.

use proc_macro2::TokenStream;
use quote::quote;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{Attribute, Error, ImplItemFn, Result};

use crate::method::{Method, options_of};
use crate::options::docs;

const KNOWN: [&str; 3] = ["name", "title", "description"];

/// A prompt, as its method and attribute describe it.
pub(crate) struct PromptMethod {
    pub(crate) name: String,
    settings: Vec<TokenStream>,
    method: Method,
}

impl PromptMethod {
    pub(crate) fn read(attribute: &Attribute, method: &mut ImplItemFn) -> Result<Self> {
        let mut settings = Vec::new();
        if let Some(text) = docs(&method.attrs) {
            settings.push(quote!(.description(#text)));
        }
        let mut name = method.sig.ident.unraw().to_string();
        for entry in options_of(attribute, "#[prompt(title = \"…\")]")? {
            let text = || entry.text();
            match entry.name.to_string().as_str() {
                "name" => name = text()?.value(),
                "title" => settings.push(text().map(|text| quote!(.title(#text)))?),
                "description" => settings.push(text().map(|text| quote!(.description(#text)))?),
                _ => return Err(entry.unknown(&KNOWN)),
            }
        }
        let read = Method::read(method, "a prompt")?;
        if method.sig.asyncness.is_none() {
            let problem = "a prompt is an `async fn`";
            return Err(Error::new(method.sig.fn_token.span(), problem));
        }
        Ok(Self {
            name,
            settings,
            method: read,
        })
    }

    /// An expression that adds this prompt to `server`.
    pub(crate) fn add(&self) -> TokenStream {
        let Self { name, settings, .. } = self;
        let call = self.method.call();
        let arguments = self.method.arguments_type();
        quote! {{
            #arguments
            let this = ::std::sync::Arc::clone(&this);
            server.prompt(
                ::belay::Prompt::new(#name, move |cx: ::belay::Context, arguments: __BelayArguments| {
                    let this = ::std::sync::Arc::clone(&this);
                    async move {
                        let _ = (&this, &cx, &arguments);
                        #call.await
                    }
                })
                #(#settings)*
            )
        }}
    }
}
