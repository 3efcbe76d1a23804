//! Names that servers choose never begin a line of their own, whatever is in them.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::{Scratch, belay_command};
use crate::terminal::Terminal;

/// What a server calls things: it would begin a line on its own, in all the ways there are.
const NAME: &str = "a\nbelay: forged\rbelay: forged\u{b}d\u{c}e\u{85}f\u{2028}g\u{2029}h\u{1b}[2Ji\u{202e}j\u{7f}k";

/// A legacy server that answers each request with the result for its method, or passes it over.
fn server(results: &[(&str, Value)]) -> (String, Vec<Scratch>) {
    let hello = json!({
        "protocolVersion": "2025-11-25",
        "capabilities": { "tools": {}, "prompts": {}, "resources": { "subscribe": true } },
        "serverInfo": { "name": NAME, "version": "1" },
    });
    let results = [&[("initialize", hello)], results].concat();
    let mut files = Vec::new();
    let mut cases = String::new();
    for (method, result) in results {
        let file = Scratch::new("result");
        std::fs::write(&file.0, result.to_string()).unwrap();
        let path = file.0.display();
        // Ids are counted by the client: one for each request.
        cases.push_str(&format!(
            "*'\"method\":\"{method}\"'*) id=$((id + 1)); printf '{{\"jsonrpc\":\"2.0\",\"id\":%s,\"result\":' $id; cat {path}; echo '}}';; "
        ));
        files.push(file);
    }
    let script = format!("id=0; while read -r line; do case $line in {cases} esac; done");
    (script, files)
}

/// All that is printed by a command on this server.
async fn printed(words: &[&str], script: &str) -> String {
    let output = belay_command()
        .args(words)
        .args(["--era", "legacy", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
}

#[track_caller]
fn check(printed: &str, what: &str) {
    assert!(!printed.is_empty(), "{what}");
    for line in printed.split([
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ]) {
        let forged = ["belay: forged", "d", "e", "f", "g", "h"];
        let is_forged = forged.iter().any(|start| match start.len() {
            1 => line == *start,
            _ => line.starts_with(start),
        });
        assert!(!is_forged, "{what}: {printed}");
    }
    let hidden = |c: char| c != '\n' && (c.is_control() || "\u{2028}\u{2029}\u{202e}".contains(c));
    assert!(!printed.contains(hidden), "{what}: {printed:?}");
}

#[tokio::test]
async fn names_of_tools_prompts_and_resources() {
    let schema = json!({
        "type": "object", "properties": { NAME: { "type": NAME }, "b": {} }, "required": [NAME],
    });
    let tools = json!({ "tools": [
        { "name": NAME, "description": NAME, "inputSchema": schema },
        { "name": "u", "description": format!("x\r{NAME}"), "inputSchema": schema },
        { "name": "t", "title": NAME, "description": NAME, "inputSchema": schema },
    ] });
    let prompts = json!({ "prompts": [
        { "name": NAME, "description": NAME, "arguments": [{ "name": NAME, "required": true }] },
        { "name": "p", "arguments": [{ "name": NAME, "required": true }, { "name": "b" }] },
    ] });
    let resource = json!({ "uri": NAME, "name": NAME });
    let described = json!({ "uri": NAME, "name": NAME, "description": NAME });
    let resources = json!({ "resources": [resource, described] });
    let templates = json!({ "resourceTemplates": [{ "uriTemplate": NAME, "name": NAME }] });
    let wrong = json!({ "contents": [{ "uri": NAME, "mimeType": NAME }] });
    let (script, _files) = server(&[
        ("tools/list", tools),
        ("prompts/list", prompts),
        ("resources/list", resources),
        ("resources/templates/list", templates),
        ("resources/read", wrong),
    ]);
    let [given, json, file] =
        ["=x", ":=x", "=@/no/such\nbelay: forged"].map(|it| format!("{NAME}{it}"));
    for words in [
        &["list"][..],
        &["list", "--schema"],
        &["call", "t"],
        &["call", "t", "x"],
        &["call", "t", "x=y"],
        &["call", "t", &given],
        &["call", "t", &json],
        &["call", "t", &file],
        &["call", "nothing"],
        &["prompt"],
        &["prompt", "p"],
        &["prompt", "p", "x"],
        &["prompt", "p", "x=y"],
        &["prompt", "nothing"],
        &["read"],
        &["read", "x:"],
    ] {
        check(&printed(words, &script).await, &format!("{words:?}"));
    }
}

#[tokio::test]
async fn what_a_server_asks_and_tells() {
    let schema = json!({ "type": "object" });
    let tools = json!({ "tools": [{ "name": "t", "inputSchema": schema }] });
    let asked = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": NAME, "requestedSchema": { "type": "object", "properties": {} } } });
    let progress = json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": {
        "progressToken": 3, "progress": 1, "message": NAME } });
    for (said, then) in [(asked, "read -r answer; "), (progress, "")] {
        let (file, last) = (Scratch::new("said"), Scratch::new("last"));
        let failed = json!({ "jsonrpc": "2.0", "id": 3, "error": { "code": 1, "message": "no" } });
        std::fs::write(&file.0, format!("{said}\n")).unwrap();
        std::fs::write(&last.0, format!("{failed}\n")).unwrap();
        let (script, _files) = server(&[("tools/list", tools.clone())]);
        let call = format!(
            "*'\"method\":\"tools/call\"'*) cat {}; {then}cat {};; esac; done",
            file.0.display(),
            last.0.display()
        );
        let script = script.replace("esac; done", &call);
        let text = printed(&["call", "t"], &script).await;
        assert!(text.contains("belay: forged"), "{text}");
        check(&text, &said.to_string());
    }
}

#[tokio::test]
async fn errors_and_changes() {
    // A message may have many lines, and none of them begins as ours do.
    let message = "x\nbelay: forged\rbelay: forged";
    for (method, id) in [("initialize", 1), ("tools/list", 2)] {
        let refused = Scratch::new("refused");
        let error = json!({ "code": 1, "message": message });
        let error = json!({ "jsonrpc": "2.0", "id": id, "error": error });
        std::fs::write(&refused.0, format!("{error}\n")).unwrap();
        let case = format!(
            "case $line in *'\"method\":\"{method}\"'*) cat {}",
            refused.0.display()
        );
        let (script, _files) = server(&[]);
        let script = script.replace("case $line in ", &format!("{case};; "));
        let text = printed(&["list"], &script).await;
        check(&text, method);
        assert_eq!(text.lines().count(), 2, "{text}");
    }
    let words = "printf 'x\\nbelay: forged\\rbelay: forged\\n' >&2; exit 3";
    let text = printed(&["list"], words).await;
    assert!(text.contains("its stderr ended with"), "{text}");
    check(&text, "last words");

    let (script, _files) = server(&[("resources/subscribe", json!({}))]);
    let changed = Scratch::new("changed");
    let change = json!({ "jsonrpc": "2.0", "method": "notifications/resources/updated",
        "params": { "uri": format!("x:{NAME}") } });
    std::fs::write(&changed.0, format!("{change}\n")).unwrap();
    let then = format!("; cat {};; ", changed.0.display());
    let script = script.replace("echo '}';; ", &format!("echo '}}'{then}"));
    // Only what was asked for is told, so this one asks for it.
    let uri = format!("x:{NAME}");
    let text = printed(&["listen", &uri, "--count", "1"], &script).await;
    assert!(text.starts_with("updated x:a"), "{text}");
    check(&text, "a change");
}

#[tokio::test]
async fn servers_in_files() {
    let file = Scratch::new(&format!("{NAME}.json"));
    let servers = json!({ "mcpServers": {
        NAME: { "command": NAME, "args": [NAME] },
        "web": { "url": NAME },
        "variable": { "command": format!("${{{NAME}}}") },
        format!("no {NAME}"): {},
    } });
    file.write_private(&servers.to_string());
    let path = file.0.display().to_string();
    for words in [
        &["servers", "--config", &path][..],
        &["list", "--config", &path, "nothing"],
        &["list", "--config", &path, "web"],
        &["list", "--config", &path, "variable"],
    ] {
        let output = belay_command().args(words).output().await.unwrap();
        let text = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        check(&text, &format!("{words:?}"));
    }
}

#[tokio::test]
async fn bytes_that_are_not_for_a_terminal() {
    let bytes = json!({ "contents": [{ "uri": NAME, "mimeType": NAME, "blob": "AAAA" }] });
    let (script, _files) = server(&[("resources/read", bytes)]);
    let shell = Scratch::new("server.sh");
    std::fs::write(&shell.0, script).unwrap();
    let read = format!("$BELAY read --era legacy x: -- sh {}", shell.0.display());
    let (_, shown) = Terminal::start(&read).ended().await;
    assert!(shown.contains("3 bytes of a"), "{shown}");
    check(&shown.replace("\r\n", "\n"), "bytes");
}

#[tokio::test]
async fn fields_of_forms() {
    let schema = json!({ "type": "object", "required": ["f"], "properties": {
        "f": { "type": "string", "title": NAME, "description": NAME, "enum": [NAME, "x"] },
        NAME: { "type": NAME },
    } });
    let tools = json!({ "tools": [{ "name": "t", "inputSchema": { "type": "object" } }] });
    let asked = json!({ "jsonrpc": "2.0", "id": "q", "method": "elicitation/create", "params": {
        "message": "m", "requestedSchema": schema } });
    let file = Scratch::new("asked");
    std::fs::write(&file.0, format!("{asked}\n")).unwrap();
    let (script, _files) = server(&[("tools/list", tools)]);
    let call = format!(
        "*'\"method\":\"tools/call\"'*) cat {};; esac; done",
        file.0.display()
    );
    let script = script.replace("esac; done", &call);
    let shell = Scratch::new("server.sh");
    std::fs::write(&shell.0, script).unwrap();
    let mut terminal = Terminal::start(&format!(
        "$BELAY call --era legacy t -- sh {}",
        shell.0.display()
    ));
    terminal.until(": ").await;
    terminal.type_in("wrong\n").await;
    terminal.until("one of ").await;
    terminal.type_in("x\n").await;
    terminal.type_in("\x04").await;
    terminal.type_in("\x03").await;
    let (_, shown) = terminal.ended().await;
    for line in shown.lines() {
        assert!(!line.trim_start().starts_with("belay: forged"), "{shown}");
    }
    assert!(shown.matches("belay: forged").count() >= 6, "{shown}");
}
