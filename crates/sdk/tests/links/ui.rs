//! The mistakes people make with the macros, and what they are told. To see a message change, and to
//! store it: `TRYBUILD=overwrite cargo nextest run -p belay-mcp ui::`.

#[test]
fn macro_mistakes_are_told_with_what_to_write_instead() {
    let cases = trybuild::TestCases::new();
    cases.compile_fail("tests/ui/*.rs");
}
