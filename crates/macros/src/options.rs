//! The options in the parentheses of an attribute.

use std::time::Duration;

use proc_macro2::{Group, Span, TokenStream};
use quote::{ToTokens, quote};
use syn::parse::{ParseStream, Parser};
use syn::spanned::Spanned;
use syn::{Error, Expr, ExprLit, Ident, Lit, LitStr, Result, Token, token};

/// One option: `name`, or `name = value`.
pub(crate) struct Entry {
    pub(crate) name: Ident,
    pub(crate) value: Option<Expr>,
}

/// Options separated by commas.
pub(crate) fn parse(tokens: TokenStream) -> Result<Vec<Entry>> {
    let entry = |input: ParseStream<'_>| {
        let name: Ident = input.parse()?;
        let value = if input.peek(Token![=]) {
            input.parse::<Token![=]>()?;
            Some(input.parse()?)
        } else if input.peek(token::Paren) {
            // No option has parentheses. It is read nevertheless, so that the error names the option.
            let group: Group = input.parse()?;
            Some(Expr::Verbatim(group.into_token_stream()))
        } else {
            None
        };
        Ok(Entry { name, value })
    };
    let entries = |input: ParseStream<'_>| input.parse_terminated(entry, Token![,]);
    Ok(entries.parse2(tokens)?.into_iter().collect())
}

impl Entry {
    /// The value as a string literal.
    pub(crate) fn text(&self) -> Result<LitStr> {
        match &self.value {
            Some(Expr::Lit(ExprLit {
                lit: Lit::Str(text),
                ..
            })) => Ok(text.clone()),
            _ => Err(self.wants("a text in quotes", "\"…\"")),
        }
    }

    /// The value as an expression for a string: a literal, or `env!(…)` and the like.
    pub(crate) fn expression(&self) -> Result<Expr> {
        self.value("a text", "\"…\"")
    }

    /// The value as an expression for a number.
    pub(crate) fn count(&self) -> Result<Expr> {
        self.value("a number", "4")
    }

    fn value(&self, what: &str, example: &str) -> Result<Expr> {
        match &self.value {
            Some(Expr::Verbatim(_)) | None => Err(self.wants(what, example)),
            Some(value) => Ok(value.clone()),
        }
    }

    /// `name`, `name = true` or `name = false`.
    pub(crate) fn flag(&self) -> Result<bool> {
        match &self.value {
            None => Ok(true),
            Some(Expr::Lit(ExprLit {
                lit: Lit::Bool(flag),
                ..
            })) => Ok(flag.value),
            Some(_) => Err(self.wants("true or false", "true")),
        }
    }

    /// The value as a duration such as `"500ms"`; gives an expression.
    pub(crate) fn duration(&self) -> Result<TokenStream> {
        let wants = || self.wants("a duration such as \"500ms\", \"5s\" or \"2m\"", "\"5s\"");
        let text = self.text().map_err(|_| wants())?;
        let duration = duration(&text.value()).ok_or_else(wants)?;
        let nanos = u64::try_from(duration.as_nanos()).map_err(|_| wants())?;
        Ok(quote!(::std::time::Duration::from_nanos(#nanos)))
    }

    fn wants(&self, what: &str, example: &str) -> Error {
        let name = &self.name;
        let problem = format!("`{name}` wants {what}: `{name} = {example}`");
        Error::new(self.span(), problem)
    }

    fn span(&self) -> Span {
        match &self.value {
            Some(value) => value.span(),
            None => self.name.span(),
        }
    }

    /// The error for an unknown option.
    pub(crate) fn unknown(&self, known: &[&str]) -> Error {
        let name = self.name.to_string();
        let nearest = known.iter().min_by_key(|known| distance(known, &name));
        let problem = match nearest.filter(|known| distance(known, &name) <= 2) {
            Some(nearest) => format!("there is no option `{name}`; did you mean `{nearest}`?"),
            None => format!(
                "there is no option `{name}`; there are {}",
                known.join(", ")
            ),
        };
        Error::new(self.name.span(), problem)
    }
}

fn duration(text: &str) -> Option<Duration> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => Some(Duration::from_secs(number)),
        "m" => number.checked_mul(60).map(Duration::from_secs),
        _ => None,
    }
}

/// The edit distance of two words.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut corner = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (corner + usize::from(a != *b))
                .min(above + 1)
                .min(row[j] + 1);
            corner = above;
        }
    }
    row[right.len()]
}

/// The doc comments among these attributes, as one text.
pub(crate) fn docs(attributes: &[syn::Attribute]) -> Option<String> {
    let lines: Vec<String> = attributes
        .iter()
        .filter(|attribute| attribute.path().is_ident("doc"))
        .filter_map(
            |attribute| match &attribute.meta.require_name_value().ok()?.value {
                Expr::Lit(ExprLit {
                    lit: Lit::Str(text),
                    ..
                }) => Some(text.value()),
                _ => None,
            },
        )
        .map(|line| line.strip_prefix(' ').unwrap_or(&line).to_owned())
        .collect();
    let text = lines.join("\n").trim().to_owned();
    Some(text).filter(|text| !text.is_empty())
}

/// The last segment of a type's path, for comparison.
pub(crate) fn last_word(kind: &syn::Type) -> Option<String> {
    match kind {
        syn::Type::Reference(reference) => last_word(&reference.elem),
        syn::Type::Path(path) => Some(path.path.segments.last()?.ident.to_string()),
        syn::Type::Group(group) => last_word(&group.elem),
        _ => None,
    }
}

/// Tokens as text.
pub(crate) fn written(tokens: &impl ToTokens) -> String {
    tokens.to_token_stream().to_string()
}
