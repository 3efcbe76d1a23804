//! `#[belay::server]` and `#[tool]`: they save typing, and do nothing that cannot be written by hand.
//!
//! They are documented where they are used from, in the crate `belay`.

mod options;
mod server;
mod tool;

use proc_macro::TokenStream;

/// Makes a server of an `impl` block: every method with `#[tool]` becomes a tool.
#[proc_macro_attribute]
pub fn server(options: TokenStream, item: TokenStream) -> TokenStream {
    server::expand(options.into(), item.into())
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}

/// Marks a method as a tool, in an `impl` block with `#[belay::server]`.
#[proc_macro_attribute]
pub fn tool(_: TokenStream, item: TokenStream) -> TokenStream {
    let problem = "#[tool] belongs to a method in an `impl` block with #[belay::server]";
    let error = syn::Error::new(proc_macro2::Span::call_site(), problem).into_compile_error();
    let item: proc_macro2::TokenStream = item.into();
    quote::quote!(#error #item).into()
}
