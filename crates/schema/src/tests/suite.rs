//! The official test suite of JSON Schema.

use std::path::Path;

use serde_json::Value;

use crate::Schema;

const FOLDERS: [(&str, &str); 5] = [
    ("draft4", "http://json-schema.org/draft-04/schema#"),
    ("draft6", "http://json-schema.org/draft-06/schema#"),
    ("draft7", "http://json-schema.org/draft-07/schema#"),
    (
        "draft2019-09",
        "https://json-schema.org/draft/2019-09/schema",
    ),
    (
        "draft2020-12",
        "https://json-schema.org/draft/2020-12/schema",
    ),
];

/// `BELAY_SCHEMA_SUITE` is the folder `tests` of `json-schema-org/JSON-Schema-Test-Suite`.
#[test]
#[ignore = "needs the official suite: BELAY_SCHEMA_SUITE names its folder `tests`"]
fn the_official_suite() {
    let suite = std::env::var_os("BELAY_SCHEMA_SUITE").expect("BELAY_SCHEMA_SUITE is set");
    let mut wrong = Vec::new();
    for (folder, dialect) in FOLDERS {
        let (mut passed, mut not_understood) = (0, Vec::new());
        let files = std::fs::read_dir(Path::new(&suite).join(folder)).expect("the suite");
        for file in files {
            let path = file.expect("a file").path();
            if path.extension().is_none_or(|extension| extension != "json") {
                continue;
            }
            let text = std::fs::read_to_string(&path).expect("a file");
            let groups: Vec<Value> = serde_json::from_str(&text).expect("JSON");
            for group in groups {
                let mut schema = group["schema"].clone();
                if let Value::Object(members) = &mut schema
                    && !members.contains_key("$schema")
                {
                    members.insert("$schema".into(), dialect.into());
                }
                let about = format!("{} {}", path.display(), group["description"]);
                match Schema::compile(&schema) {
                    Err(error) => not_understood.push(format!("{about}: {error}")),
                    Ok(compiled) => {
                        for test in group["tests"].as_array().expect("tests") {
                            let found = compiled.check(&test["data"]);
                            match found.is_ok() == (test["valid"] == true) {
                                true => passed += 1,
                                false => wrong
                                    .push(format!("{about} {}: {found:?}", test["description"])),
                            }
                        }
                    }
                }
            }
        }
        println!(
            "{folder}: {passed} passed; {} not understood:",
            not_understood.len()
        );
        for problem in not_understood {
            println!("  {problem}");
        }
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
