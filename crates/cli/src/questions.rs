//! Elicitation: questions of a server, answered by the user at the terminal.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use belay::client::ClientBuilder;
use belay::types::{ElicitResult, ElicitUrlParams};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, oneshot};

use crate::fields;
use crate::output::{escaped, one_line, printable, tell};
use crate::progress::Bar;
use crate::target::is_interactive;

/// Answers the server's questions, one after another.
pub(crate) struct Questions {
    lines: Mutex<Lines>,
    nobody: AtomicBool,
    bar: Bar,
    json: bool,
    /// The server as the user named it on the command line.
    who: String,
}

/// Lines from the terminal.
#[derive(Default)]
struct Lines {
    /// A reader thread that waits for a line. If the server cancels its question, the next question
    /// takes the reader over.
    waiting: Option<oneshot::Receiver<Option<String>>>,
}

impl Questions {
    pub(crate) fn new(bar: Bar, json: bool, who: String) -> Self {
        Self {
            lines: Mutex::default(),
            nobody: AtomicBool::new(false),
            bar,
            json,
            who,
        }
    }

    /// Registers the handlers for elicitation with a client.
    pub(crate) fn answer_for(self: Arc<Self>, builder: ClientBuilder) -> ClientBuilder {
        let pages = self.clone();
        builder
            .on_elicit(move |form| {
                let questions = self.clone();
                async move { Ok(questions.answer(&json!(form)).await) }
            })
            .on_elicit_url(move |page| {
                let questions = pages.clone();
                async move { Ok(questions.visit(&page).await) }
            })
    }

    /// Whether a question was cancelled because the user could not be asked.
    pub(crate) fn nobody_to_ask(&self) -> bool {
        self.nobody.load(Ordering::SeqCst)
    }

    /// Whether the user can be asked. If not, remembers and reports that.
    fn is_somebody_there(&self, message: &str) -> bool {
        if !self.json && is_interactive() {
            return true;
        }
        self.nobody.store(true, Ordering::SeqCst);
        if !self.json {
            tell(&format!(
                "belay: the server asks for input, but stdin or stderr is not a terminal: {}",
                escaped(message)
            ));
        }
        false
    }

    /// URL elicitation: shows the URL in full. belay never opens it.
    async fn visit(&self, page: &ElicitUrlParams) -> ElicitResult {
        if !self.is_somebody_there(&page.message) {
            return ElicitResult::cancel();
        }
        let mut lines = self.lines.lock().await;
        self.bar.pause(true);
        let _paused = OnDrop(|| self.bar.pause(false));
        tell(&format!("\n{}", quoted(&self.who, &page.message)));
        for line in address(&page.url) {
            tell(&format!("  {line}"));
        }
        let yes = json!({ "type": "boolean" });
        match lines
            .field("Accept, and open this URL yourself", &yes, true)
            .await
        {
            Some(Value::Bool(true)) => ElicitResult::consent(),
            Some(_) => ElicitResult::decline(),
            None => ElicitResult::cancel(),
        }
    }

    async fn answer(&self, form: &Value) -> ElicitResult {
        let message = form["message"].as_str().unwrap_or("The server asks:");
        if !self.is_somebody_there(message) {
            return ElicitResult::cancel();
        }
        let mut lines = self.lines.lock().await;
        // Progress must not overwrite what the user types.
        self.bar.pause(true);
        let _paused = OnDrop(|| self.bar.pause(false));
        tell(&format!("\n{}", quoted(&self.who, message)));
        tell("Ctrl-D declines, Ctrl-C cancels the call.");
        let schema = &form["requestedSchema"];
        loop {
            let Some(content) = lines.form(schema).await else {
                return ElicitResult::decline();
            };
            // The user sees the whole answer before it is sent.
            tell(&format!("To {}: {}", escaped(&self.who), json!(content)));
            let choices = json!({ "type": "string", "enum": ["send", "change", "decline"] });
            match lines
                .field("Send this answer", &choices, true)
                .await
                .as_ref()
            {
                Some(choice) if choice == "send" => return ElicitResult::accept(content),
                Some(choice) if choice == "change" => {}
                _ => return ElicitResult::decline(),
            }
        }
    }
}

impl Lines {
    /// Reads all fields of a form. `None` if the user declines with Ctrl-D.
    async fn form(&mut self, schema: &Value) -> Option<Map<String, Value>> {
        let mut content = Map::new();
        for (name, field) in schema["properties"].as_object().into_iter().flatten() {
            let required = schema["required"].as_array();
            let required = required.is_some_and(|names| names.iter().any(|it| it == name));
            if let Some(description) = field["description"].as_str() {
                tell(&one_line(description));
            }
            match self.field(name, field, required).await? {
                Value::Null => {}
                value => _ = content.insert(name.clone(), value),
            }
        }
        Some(content)
    }

    /// Reads one field, and asks again until it is valid. Null if it is left empty, `None` if the
    /// user declines with Ctrl-D.
    async fn field(&mut self, name: &str, schema: &Value, required: bool) -> Option<Value> {
        let label = schema["title"].as_str().unwrap_or(name);
        loop {
            let hint = fields::hint(schema, required);
            say(&format!("{}{}: ", escaped(label), escaped(&hint)));
            let line = self.next().await?;
            match fields::read(line.trim(), schema, required) {
                Ok(value) => return Some(value),
                Err(problem) => tell(&escaped(&problem)),
            }
        }
    }

    /// Reads the next line; `None` at the end of stdin. A thread reads it, because reading blocks
    /// and may never return.
    async fn next(&mut self) -> Option<String> {
        let waiting = self.waiting.get_or_insert_with(|| {
            let (done, line) = oneshot::channel();
            std::thread::spawn(move || {
                let mut text = String::new();
                let read = std::io::stdin().read_line(&mut text);
                let _ = done.send(read.ok().filter(|count| *count > 0).map(|_| text));
            });
            line
        });
        let line = waiting.await;
        self.waiting = None;
        line.ok().flatten()
    }
}

struct OnDrop<F: Fn()>(F);

impl<F: Fn()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// Quotes a server's message, so that it cannot pass for a message of belay.
fn quoted(who: &str, message: &str) -> String {
    let lines = message.lines().map(|line| format!("> {}\n", escaped(line)));
    let lines: String = lines.collect();
    format!("{} asks:\n{}", escaped(who), lines.trim_end())
}

/// A URL in full, its host, and warnings about it.
fn address(url: &str) -> Vec<String> {
    let mut lines = vec![ascii(url)];
    let authority = ["https://", "http://"]
        .into_iter()
        .find_map(|scheme| url.strip_prefix(scheme))
        .and_then(|rest| rest.split(['/', '?', '#', '\\']).next());
    let Some(authority) = authority else {
        lines.push("This is not an http or https URL.".into());
        return lines;
    };
    let host = authority.rsplit('@').next().unwrap_or_default();
    lines.push(format!("Its host is {}.", ascii(host)));
    if authority.contains('@') {
        lines.push("The text before the @ is not the host.".into());
    }
    if host.contains("xn--") || !host.is_ascii() {
        lines.push("The host name has characters that can look like other characters.".into());
    }
    lines
}

/// Escapes everything but visible ASCII, because other characters can look alike.
fn ascii(text: &str) -> String {
    let mut plain = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter.is_ascii_graphic() {
            true => plain.push(letter),
            false => plain.extend(letter.escape_unicode()),
        }
    }
    plain
}

fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{}", printable(text, true));
    let _ = stderr.flush();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_cannot_pretend() {
        for (url, said) in [
            ("https://example.com/a?b=c", "Its host is example.com."),
            ("https://bank.example@evil.test/", "Its host is evil.test."),
            ("https://bank.example@evil.test/", "text before the @"),
            (
                "https://evil.test\\@bank.example/",
                "Its host is evil.test.",
            ),
            ("https://xn--bnk-6na.example/", "look like other"),
            ("https://b\u{430}nk.example/", "look like other"),
            (
                "https://b\u{430}nk.example/",
                "https://b\\u{430}nk.example/",
            ),
            ("https://a.test/\u{202e}moc.elpmaxe", "\\u{202e}"),
            ("javascript:alert(1)", "not an http or https URL"),
        ] {
            let lines = address(url).join("\n");
            assert!(lines.contains(said), "{url}: {lines}");
        }
        let quoted = quoted("orders", "a\nbelay: b");
        assert_eq!(quoted, "orders asks:\n> a\n> belay: b");
    }
}
