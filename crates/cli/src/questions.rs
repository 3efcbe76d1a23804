//! What a server asks, answered at the terminal.

use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use belay::ClientBuilder;
use belay::types::{ElicitResult, ElicitUrlParams};
use serde_json::{Map, Value, json};
use tokio::sync::{Mutex, oneshot};

use crate::output::{printable, tell};
use crate::progress::Bar;
use crate::target::is_interactive;

/// Answers the server's questions, one after another.
pub(crate) struct Questions {
    lines: Mutex<Lines>,
    nobody: AtomicBool,
    bar: Bar,
    json: bool,
}

/// Lines from the terminal.
#[derive(Default)]
struct Lines {
    /// A reader that waits for a line. If the server no longer asks, the next question takes it
    /// over.
    waiting: Option<oneshot::Receiver<Option<String>>>,
}

impl Questions {
    pub(crate) fn new(bar: Bar, json: bool) -> Self {
        Self {
            lines: Mutex::default(),
            nobody: AtomicBool::new(false),
            bar,
            json,
        }
    }

    /// Lets a client answer what it is asked.
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

    /// Whether something was asked and nobody was there.
    pub(crate) fn nobody_to_ask(&self) -> bool {
        self.nobody.load(Ordering::SeqCst)
    }

    /// Whether there is somebody. If not, that is told.
    fn is_somebody_there(&self, message: &str) -> bool {
        if !self.json && is_interactive() {
            return true;
        }
        self.nobody.store(true, Ordering::SeqCst);
        if !self.json {
            tell(&format!(
                "belay: the server asks, and there is no terminal to answer at: {message}"
            ));
        }
        false
    }

    /// A page to visit: shown in full, and never opened by us.
    async fn visit(&self, page: &ElicitUrlParams) -> ElicitResult {
        if !self.is_somebody_there(&page.message) {
            return ElicitResult::cancel();
        }
        let mut lines = self.lines.lock().await;
        self.bar.pause(true);
        let _paused = OnDrop(|| self.bar.pause(false));
        tell(&format!("\n{}\n  {}", page.message, page.url));
        let yes = json!({ "type": "boolean" });
        match lines.field("Visit it, and go on", &yes, true).await {
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
        // Nothing is drawn over what is being typed.
        self.bar.pause(true);
        let _paused = OnDrop(|| self.bar.pause(false));
        tell(&format!("\n{message}"));
        let schema = &form["requestedSchema"];
        let properties = schema["properties"].as_object();
        let mut content = Map::new();
        for (name, field) in properties.into_iter().flatten() {
            let required = schema["required"].as_array();
            let required = required.is_some_and(|names| names.iter().any(|it| it == name));
            match lines.field(name, field, required).await {
                None => return ElicitResult::decline(),
                Some(Value::Null) => {}
                Some(value) => _ = content.insert(name.clone(), value),
            }
        }
        ElicitResult::accept(content)
    }
}

impl Lines {
    /// One field, asked for until it fits: null if it is left out, `None` if the person does not
    /// want to say.
    async fn field(&mut self, name: &str, schema: &Value, required: bool) -> Option<Value> {
        let label = schema["title"].as_str().unwrap_or(name);
        loop {
            say(&format!("{label}{}: ", hint(schema, required)));
            let line = self.next().await?;
            match read(line.trim(), schema, required) {
                Ok(value) => return Some(value),
                Err(problem) => tell(&problem),
            }
        }
    }

    /// The next line; `None` at the end of the input. It is read on a thread, since it may never
    /// come.
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

fn say(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = write!(stderr, "{}", printable(text, true));
    let _ = stderr.flush();
}

/// What may be typed.
fn hint(schema: &Value, required: bool) -> String {
    let mut hints = Vec::new();
    match choices(schema) {
        choices if choices.is_empty() => match schema["type"].as_str() {
            Some("boolean") => hints.push("y or n".to_owned()),
            Some(kind @ ("integer" | "number")) => hints.push(kind.to_owned()),
            _ => {}
        },
        choices => hints.push(choices.join(", ")),
    }
    match &schema["default"] {
        Value::Null if required => {}
        Value::Null => hints.push("may be left out".to_owned()),
        default => hints.push(format!("default {default}")),
    }
    match hints.is_empty() {
        true => String::new(),
        false => format!(" ({})", hints.join("; ")),
    }
}

/// The values there are to choose from.
fn choices(schema: &Value) -> Vec<&str> {
    let plain = schema["enum"].as_array().into_iter().flatten();
    let titled = schema["oneOf"].as_array().into_iter().flatten();
    plain
        .filter_map(Value::as_str)
        .chain(titled.filter_map(|choice| choice["const"].as_str()))
        .collect()
}

/// What was typed, as the schema wants it.
fn read(text: &str, schema: &Value, required: bool) -> Result<Value, String> {
    if text.is_empty() {
        return match (&schema["default"], required) {
            (Value::Null, true) => Err("this one is needed; Ctrl-D declines".into()),
            (default, _) => Ok(default.clone()),
        };
    }
    let choices = choices(schema);
    if !choices.is_empty() && !choices.contains(&text) {
        return Err(format!("one of {}", choices.join(", ")));
    }
    let value = match schema["type"].as_str() {
        Some("boolean") => match text {
            "y" | "yes" | "true" => Some(true.into()),
            "n" | "no" | "false" => Some(false.into()),
            _ => None,
        },
        Some("integer") => text.parse::<i64>().ok().map(Value::from),
        Some("number") => text
            .parse::<f64>()
            .ok()
            .filter(|number| number.is_finite())
            .map(Value::from),
        _ => Some(text.into()),
    };
    let kind = schema["type"].as_str().unwrap_or("text");
    value.ok_or_else(|| format!("that is no {kind}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_becomes_what_the_schema_wants() {
        let number = json!({ "type": "integer" });
        let flag = json!({ "type": "boolean", "default": true });
        let colour = json!({ "type": "string", "enum": ["red", "blue"] });
        let size = json!({ "type": "string", "oneOf": [{ "const": "s", "title": "Small" }] });
        for (text, schema, required, expected) in [
            ("7", &number, true, Ok(json!(7))),
            ("x", &number, true, Err("that is no integer")),
            (
                "",
                &number,
                true,
                Err("this one is needed; Ctrl-D declines"),
            ),
            ("", &number, false, Ok(Value::Null)),
            ("", &flag, true, Ok(json!(true))),
            ("no", &flag, true, Ok(json!(false))),
            ("maybe", &flag, true, Err("that is no boolean")),
            ("red", &colour, true, Ok(json!("red"))),
            ("green", &colour, true, Err("one of red, blue")),
            ("s", &size, true, Ok(json!("s"))),
            ("m", &size, true, Err("one of s")),
            (
                "nan",
                &json!({ "type": "number" }),
                true,
                Err("that is no number"),
            ),
            ("anything", &json!({}), true, Ok(json!("anything"))),
        ] {
            let read = read(text, schema, required);
            assert_eq!(read, expected.map_err(str::to_owned), "{text:?}");
        }
        assert_eq!(hint(&flag, true), " (y or n; default true)");
        assert_eq!(hint(&colour, false), " (red, blue; may be left out)");
        assert_eq!(hint(&json!({ "type": "string" }), true), "");
    }
}
