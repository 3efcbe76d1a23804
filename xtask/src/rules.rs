//! Checks that the rules in `docs/lifecycle.md` link to existing tests.

use std::path::Path;

use crate::step::root;

pub(crate) fn run() -> Result<(), String> {
    println!("\n── rules");
    let folder = root().join("docs");
    let text = read(&folder.join("lifecycle.md"))?;
    for link in links(&text) {
        if !folder.join(link).exists() {
            return Err(format!(
                "docs/lifecycle.md leads to {link}, which is not there"
            ));
        }
    }
    let mut rules = 0;
    for row in text.lines().filter(|line| line.starts_with("| **")) {
        let rule = row.split("**").nth(1).unwrap_or_default();
        let tests = row.split('|').nth(3).unwrap_or_default();
        let (_, real) = tests.split_once('—').unwrap_or_default();
        let name = rule.replace('-', "_");
        let (alone, first) = (format!("fn {name}("), format!("fn {name}_"));
        let mut has_test = false;
        for link in links(real) {
            let tests = read(&folder.join(link))?;
            has_test |= tests.contains(&alone) || tests.contains(&first);
        }
        if !has_test {
            return Err(format!(
                "{rule}: none of the tests that docs/lifecycle.md leads to begins with its name"
            ));
        }
        rules += 1;
    }
    println!("each of {rules} rules has a test of its name");
    Ok(())
}

fn links(text: &str) -> impl Iterator<Item = &str> {
    let after = text.split("](").skip(1);
    after.filter_map(|rest| rest.split_once(')').map(|(link, _)| link))
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{}: {error}", path.display()))
}
