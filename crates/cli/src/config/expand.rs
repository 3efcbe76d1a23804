//! Expands `${VAR}`, `${VAR:-default}` and `${env:VAR}` in configuration files.

/// Maximum nesting of defaults. One or two levels are common; a hostile file could nest until the
/// stack overflows.
const DEPTH: usize = 32;

/// The value of an environment variable, if it is set.
type Variable<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Expands the variables in a text. The error is a message for the user.
pub(super) fn expand(text: &str, variable: Variable<'_>) -> Result<String, String> {
    expand_within(DEPTH, text, variable)
}

fn expand_within(depth: usize, text: &str, variable: Variable<'_>) -> Result<String, String> {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        if depth == 0 {
            return Err(format!(
                "variables are nested more than {DEPTH} deep; use fewer nested defaults"
            ));
        }
        expanded.push_str(&rest[..start]);
        let inside = &rest[start + 2..];
        // Each level scans every byte once, and the number of levels is limited.
        let Some(end) = closing(inside) else {
            return Err("`${` without a closing `}`".into());
        };
        expanded.push_str(&value(depth, &inside[..end], variable)?);
        rest = &inside[end + 1..];
    }
    expanded.push_str(rest);
    Ok(expanded)
}

/// Position of the closing bracket. A default may contain nested brackets.
fn closing(text: &str) -> Option<usize> {
    let mut open = 0;
    for (at, c) in text.char_indices() {
        match c {
            '{' => open += 1,
            '}' if open == 0 => return Some(at),
            '}' => open -= 1,
            _ => {}
        }
    }
    None
}

fn value(depth: usize, inside: &str, variable: Variable<'_>) -> Result<String, String> {
    if let Some(input) = inside.strip_prefix("input:") {
        return Err(format!(
            "`${{input:{input}}}` works only in the editor; \
             set an environment variable and write `${{env:…}}`"
        ));
    }
    let inside = inside.strip_prefix("env:").unwrap_or(inside);
    let (name, default) = match inside.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (inside, None),
    };
    match (variable(name).filter(|value| !value.is_empty()), default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => expand_within(depth - 1, default, variable),
        (None, None) => Err(format!(
            "the environment variable {name} is not set; set it, or write `${{{name}:-default}}`"
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expanded(text: &str) -> Result<String, String> {
        let variable = |name: &str| match name {
            "HOME" => Some("/home/ann".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        expand(text, &variable)
    }

    #[test]
    fn variables_are_expanded_with_their_defaults() {
        for (text, expected) in [
            ("plain $5", "plain $5"),
            ("${HOME}/x", "/home/ann/x"),
            ("a${env:HOME}b${HOME}", "a/home/annb/home/ann"),
            ("${NONE:-7}", "7"),
            ("${EMPTY:-7}${HOME:-7}", "7/home/ann"),
            ("${NONE:-}", ""),
            ("${NONE:-${HOME}/x}y", "/home/ann/xy"),
        ] {
            assert_eq!(expanded(text).as_deref(), Ok(expected));
        }
    }

    #[test]
    fn what_cannot_be_expanded_is_told_with_what_to_do() {
        for (text, expected) in [
            (
                "${NONE}",
                "NONE is not set; set it, or write `${NONE:-default}`",
            ),
            ("${HOME", "without a closing `}`"),
            ("${input:key}", "works only in the editor"),
        ] {
            let problem = expanded(text).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
        }
    }

    #[test]
    fn defaults_stand_in_one_another_within_reason() {
        let nested = |depth: usize| format!("{}7{}", "${NONE:-".repeat(depth), "}".repeat(depth));
        for depth in [1, 2, 31, 32] {
            assert_eq!(expanded(&nested(depth)).as_deref(), Ok("7"), "{depth}");
        }
        let open = "${NONE:-".repeat(100_000);
        for (text, expected) in [
            (nested(33), "nested more than 32 deep"),
            (nested(100_000), "nested more than 32 deep"),
            (open.clone(), "without a closing `}`"),
            (open + "}", "without a closing `}`"),
        ] {
            let problem = expanded(&text).unwrap_err();
            assert!(problem.contains(expected), "{problem}");
            assert!(problem.len() < 200, "it does not repeat the text");
        }
        // Beside each other there may be any number, and none is looked at twice.
        let beside = "${NONE:-7}".repeat(100_000);
        assert_eq!(expanded(&beside).unwrap(), "7".repeat(100_000));
    }
}
