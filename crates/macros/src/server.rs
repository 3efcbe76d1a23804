//! An `impl` block that is a server.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, ImplItem, Item, ItemImpl, Result};

use crate::options::{self, docs};
use crate::tool::{self, ToolMethod};

const KNOWN: [&str; 3] = ["name", "version", "instructions"];

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut block = impl_block(item)?;
    let mut name = quote!(::core::env!("CARGO_PKG_NAME"));
    let mut version = quote!(::core::env!("CARGO_PKG_VERSION"));
    let mut instructions = docs(&block.attrs).map(|text| quote!(#text));
    for entry in options::parse(options)? {
        let place = match entry.name.to_string().as_str() {
            "name" => &mut name,
            "version" => &mut version,
            "instructions" => instructions.get_or_insert_default(),
            _ => return Err(entry.unknown(&KNOWN)),
        };
        let expression = entry.expression()?;
        *place = quote!(#expression);
    }
    let instructions = instructions.map(|text| quote!(.instructions(#text)));
    let tools = tools(&mut block)?;
    let kind = &block.self_ty;
    Ok(quote! {
        #block

        impl #kind {
            #[doc(hidden)]
            fn __into_belay_server(self) -> ::belay::Server {
                let this = ::std::sync::Arc::new(self);
                let server = ::belay::Server::new(#name, #version) #instructions;
                #(#tools)*
                let _ = &this;
                server
            }
        }

        impl ::core::convert::From<#kind> for ::belay::Server {
            fn from(this: #kind) -> Self {
                this.__into_belay_server()
            }
        }
    })
}

fn impl_block(item: TokenStream) -> Result<ItemImpl> {
    let wants = "#[belay::server] belongs to an `impl` block: `#[belay::server] impl Orders { … }`";
    let block = match syn::parse2(item)? {
        Item::Impl(block) => block,
        other => return Err(Error::new(other.span(), wants)),
    };
    if let Some((_, path, _)) = &block.trait_ {
        return Err(Error::new(path.span(), format!("{wants}, not of a trait")));
    }
    if !block.generics.params.is_empty() {
        let problem =
            "a server has no generic parameters; put what differs behind a `dyn` or an enum";
        return Err(Error::new(block.generics.span(), problem));
    }
    Ok(block)
}

/// One statement for each method that is a tool.
fn tools(block: &mut ItemImpl) -> Result<Vec<TokenStream>> {
    let mut added = Vec::new();
    let mut names = HashMap::new();
    let mut errors: Option<Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else {
            continue;
        };
        let Some(attribute) = tool::take_attribute(method) else {
            continue;
        };
        let read = ToolMethod::read(&attribute, method).and_then(|(tool, fields)| {
            let ident = method.sig.ident.clone();
            // A method that may not be there takes its tool along, and may be there twice.
            let cfgs: Vec<_> = method
                .attrs
                .iter()
                .filter(|it| it.path().is_ident("cfg"))
                .collect();
            let add = tool.add(&fields);
            let add = quote!(#(#cfgs)* let server = #add;);
            if !cfgs.is_empty() {
                return Ok(add);
            }
            match names.insert(tool.name.clone(), ident.clone()) {
                None => Ok(add),
                Some(first) => {
                    let name = &tool.name;
                    let problem = format!(
                        "`{first}` is called {name:?}, too: give one of them another `name`"
                    );
                    Err(Error::new(ident.span(), problem))
                }
            }
        });
        match (read, &mut errors) {
            (Ok(tool), _) => added.push(tool),
            (Err(error), None) => errors = Some(error),
            (Err(error), Some(errors)) => errors.combine(error),
        }
    }
    errors.map_or(Ok(added), Err)
}
