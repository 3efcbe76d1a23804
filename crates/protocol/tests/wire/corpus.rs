//! What the fuzzers start from, and what they have found: replayed by every ordinary run.

#[path = "../../../../fuzz/src/checks.rs"]
mod checks;

use std::path::Path;

fn replay(target: &str, check: fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut count = 0;
    for entry in std::fs::read_dir(corpus.join(target)).unwrap() {
        check(&std::fs::read(entry.unwrap().path()).unwrap());
        count += 1;
    }
    assert!(count > 0, "the corpus of {target} is empty");
}

#[test]
fn the_corpus_of_envelopes_breaks_nothing() {
    replay("envelope", checks::envelope);
}

#[test]
fn the_corpus_of_lines_breaks_nothing() {
    replay("lines", checks::lines);
}

#[test]
fn the_corpus_of_events_breaks_nothing() {
    replay("events", checks::events);
}

#[test]
fn the_corpus_of_conversations_breaks_nothing() {
    replay("engine", checks::engine);
}
