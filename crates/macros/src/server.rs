//! An `impl` block that becomes a server.

use std::collections::HashMap;

use proc_macro2::TokenStream;
use quote::quote;
use syn::spanned::Spanned;
use syn::{Error, ImplItem, ImplItemFn, Item, ItemImpl, Result};

use crate::method::{clean, take_attribute};
use crate::options::{self, docs};
use crate::prompt::PromptMethod;
use crate::resource::ResourceMethod;
use crate::tool::ToolMethod;

const KNOWN: [&str; 3] = ["name", "version", "instructions"];

pub(crate) fn expand(options: TokenStream, item: TokenStream) -> Result<TokenStream> {
    let mut block = impl_block(item)?;
    Ok(server(options, &mut block).unwrap_or_else(|mistake| stand_in(&mut block, mistake)))
}

/// What is left after a mistake: the methods, and a conversion that is never run. Without it the compiler
/// would report, besides the mistake, that the type is not a server, wherever it is used as one.
fn stand_in(block: &mut ItemImpl, mistake: Error) -> TokenStream {
    for item in &mut block.items {
        if let ImplItem::Fn(method) = item {
            clean(method);
        }
    }
    let mistake = mistake.into_compile_error();
    let kind = &block.self_ty;
    quote! {
        #mistake

        // The mistake alone is to be reported.
        #[allow(unused)]
        #block

        impl ::core::convert::From<#kind> for ::belay::Server {
            fn from(_: #kind) -> Self {
                ::core::unreachable!("this program does not compile")
            }
        }
    }
}

fn server(options: TokenStream, block: &mut ItemImpl) -> Result<TokenStream> {
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
    let statements = statements(block)?;
    let kind = &block.self_ty;
    Ok(quote! {
        #block

        impl #kind {
            #[doc(hidden)]
            fn __into_belay_server(self) -> ::belay::Server {
                let this = ::std::sync::Arc::new(self);
                let server = ::belay::Server::new(#name, #version) #instructions;
                #(#statements)*
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

/// A tool, prompt or resource: its name, which must be unique among its kind, and an expression
/// that adds it.
struct Offered {
    kind: &'static str,
    name: String,
    add: TokenStream,
}

fn offered(method: &mut ImplItemFn) -> Option<Result<Offered>> {
    let offered = |kind, name, add| Offered { kind, name, add };
    if let Some(attribute) = take_attribute(method, "tool") {
        let tool = ToolMethod::read(&attribute, method);
        return Some(tool.map(|tool| offered("tool", tool.name.clone(), tool.add())));
    }
    if let Some(attribute) = take_attribute(method, "prompt") {
        let prompt = PromptMethod::read(&attribute, method);
        return Some(prompt.map(|prompt| offered("prompt", prompt.name.clone(), prompt.add())));
    }
    let attribute = take_attribute(method, "resource")?;
    let resource = ResourceMethod::read(&attribute, method);
    Some(resource.map(|resource| offered("resource", resource.uri.value(), resource.add())))
}

/// A statement for each method that is a tool, a prompt or a resource.
fn statements(block: &mut ItemImpl) -> Result<Vec<TokenStream>> {
    let mut added = Vec::new();
    let mut names = HashMap::new();
    let mut errors: Option<Error> = None;
    for item in &mut block.items {
        let ImplItem::Fn(method) = item else {
            continue;
        };
        let Some(offered) = offered(method) else {
            continue;
        };
        let read = offered.and_then(|Offered { kind, name, add }| {
            let ident = method.sig.ident.clone();
            // A method with a `cfg` gives it to its tool. Two such methods may have the same name.
            let cfgs: Vec<_> = method
                .attrs
                .iter()
                .filter(|it| it.path().is_ident("cfg"))
                .collect();
            let add = quote!(#(#cfgs)* let server = #add;);
            if !cfgs.is_empty() {
                return Ok(add);
            }
            match names.insert((kind, name.clone()), ident.clone()) {
                None => Ok(add),
                Some(first) => {
                    let option = if kind == "resource" { "uri" } else { "name" };
                    let problem = format!(
                        "`{first}` is called {name:?}, too: give one of them another `{option}`"
                    );
                    Err(Error::new(ident.span(), problem))
                }
            }
        });
        match (read, &mut errors) {
            (Ok(statement), _) => added.push(statement),
            (Err(error), None) => errors = Some(error),
            (Err(error), Some(errors)) => errors.combine(error),
        }
    }
    errors.map_or(Ok(added), Err)
}
