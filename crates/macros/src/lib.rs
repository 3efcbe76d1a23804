//! `#[belay::server]`, `#[tool]`, `#[prompt]` and `#[resource]`. They save typing: all that they
//! write can be written by hand.
//!
//! They are documented in the crate `belay`, which re-exports them.

mod method;
mod options;
mod prompt;
mod resource;
mod server;
mod tool;

use proc_macro::TokenStream;

/// Makes a server of an `impl` block. Every method with `#[tool]`, `#[prompt]` or `#[resource]` is
/// added to it.
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    server::expand(options.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Marks a method as a tool, in an `impl` block with `#[belay::server]`.
#[proc_macro_attribute]
pub fn tool(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("tool", item)
}

/// Marks a method as a prompt, in an `impl` block with `#[belay::server]`.
#[proc_macro_attribute]
pub fn prompt(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("prompt", item)
}

/// Marks a method as a resource, in an `impl` block with `#[belay::server]`.
#[proc_macro_attribute]
pub fn resource(_: TokenStream, item: TokenStream) -> TokenStream {
    misplaced("resource", item)
}

/// The block removes these attributes from its methods, so one that is expanded by itself is
/// misplaced.
fn misplaced(name: &str, item: TokenStream) -> TokenStream {
    let problem = format!("#[{name}] belongs to a method in an `impl` block with #[belay::server]");
    let error = syn::Error::new(proc_macro2::Span::call_site(), problem).into_compile_error();
    let item: proc_macro2::TokenStream = item.into();
    quote::quote!(#error #item).into()
}
