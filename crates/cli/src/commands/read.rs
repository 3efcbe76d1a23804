//! `belay read`

use std::io::IsTerminal;

use belay::types::{ListResourceTemplates, ReadResourceResult};
use clap::Args;
use clap_complete::ArgValueCompleter;
use serde_json::json;

use super::completions;
use crate::exit::{self, Code};
use crate::interrupt::Interrupt;
use crate::output;
use crate::target::{Connected, Target, which_server};

/// Read a resource, or list the resources and resource templates.
///
/// Text and binary contents are written to stdout unchanged. Binary contents are not written to a
/// terminal.
#[derive(Args)]
#[command(
    override_usage = "belay read [OPTIONS] <SERVER> [URI]\n       belay read [OPTIONS] [URI] -- <COMMAND>...",
    after_help = "Examples:
  belay read -- belay serve                          # list the resources
  belay read demo://hello -- belay serve
  belay read https://example.com/mcp file:///logo.png > logo.png"
)]
pub(crate) struct Read {
    /// Server (unless its command follows `--`) and URI of the resource
    #[arg(value_name = "WORD", add = ArgValueCompleter::new(completions::servers))]
    words: Vec<String>,
    #[command(flatten)]
    target: Target,
}

impl Read {
    pub(crate) async fn run(self) -> Code {
        let (name, uri) = match self.split() {
            Ok(split) => split,
            Err(problem) => return output::usage(&problem, self.target.json),
        };
        let interrupt = Interrupt::new();
        let server = match self.target.connect(name, &interrupt).await {
            Ok(server) => server,
            Err(code) => return code,
        };
        interrupt.stops(&server, self.read(&server, uri)).await
    }

    /// Splits the words into the server (if there is no command) and the URI, if there is one.
    fn split(&self) -> Result<(Option<&str>, Option<&str>), String> {
        match (self.target.has_command(), self.words.as_slice()) {
            (true, []) => Ok((None, None)),
            (true, [uri]) => Ok((None, Some(uri))),
            (false, [server]) => Ok((Some(server), None)),
            (false, [server, uri]) => Ok((Some(server), Some(uri))),
            (false, []) => Err(which_server().into()),
            _ => Err("only one URI can be read at a time".into()),
        }
    }

    async fn read(&self, server: &Connected<'_>, uri: Option<&str>) -> Code {
        let json = self.target.json;
        let Some(uri) = uri else {
            return self.list(server).await;
        };
        let bar = server.bar.clone();
        let call = server.timed(server.client.read_resource(uri));
        let read = call.on_progress(move |step| bar.tell(&step)).await;
        server.bar.clear();
        let code = match read {
            Ok(result) if json => output::put(json!(result).to_string()).await,
            Ok(result) => show(result).await,
            Err(error) => output::fail(&error, json),
        };
        match server.nobody_to_ask() {
            true => exit::INPUT_REQUIRED,
            false => code,
        }
    }

    async fn list(&self, server: &Connected<'_>) -> Code {
        let json = self.target.json;
        let resources = match server
            .listed("resources", server.client.list_all_resources())
            .await
        {
            Ok(resources) => resources,
            Err(code) => return code,
        };
        let templates = async {
            match server.client.pages::<ListResourceTemplates>().all().await {
                // Some servers with resources do not implement templates.
                Err(error) if output::is_unknown(&error) => Ok(Vec::new()),
                listed => listed,
            }
        };
        let templates = match server.listed("templates", templates).await {
            Ok(templates) => templates,
            Err(code) => return code,
        };
        if json {
            let all = json!({ "resources": resources, "resourceTemplates": templates });
            return output::put(all.to_string()).await;
        }
        let described =
            |description: Option<&str>, name: &str| output::first_line(description.unwrap_or(name));
        let resources = resources.iter().map(|it| {
            let description = described(it.description.as_deref(), &it.name);
            (output::escaped(&it.uri), description)
        });
        let templates = templates.iter().map(|it| {
            let description = described(it.description.as_deref(), &it.name);
            (output::escaped(&it.uri_template), description)
        });
        output::put(output::columns(resources.chain(templates))).await
    }
}

async fn show(result: ReadResourceResult) -> Code {
    let on_terminal = std::io::stdout().is_terminal();
    for contents in result.contents {
        let printed = match contents.text.clone() {
            // A terminal gets one newline at the end; a file gets the text unchanged.
            Some(text) if on_terminal => {
                output::put_on(text.trim_end_matches('\n').to_owned()).await
            }
            Some(text) => output::put_bytes(text.into_bytes()).await,
            None => {
                let Some(bytes) = contents.to_bytes() else {
                    let uri = output::escaped(&contents.uri);
                    let problem =
                        format!("the contents of {uri} are neither text nor valid base64");
                    output::end("violated", &problem, false);
                    return exit::REFUSED;
                };
                if on_terminal {
                    let kind = contents.mime_type.as_deref().unwrap_or("binary data");
                    let problem = format!(
                        "{} is {} bytes of {}; redirect the output to a file with `>`",
                        output::escaped(&contents.uri),
                        bytes.len(),
                        output::escaped(kind)
                    );
                    return output::usage(&problem, false);
                }
                output::put_bytes(bytes).await
            }
        };
        if let Err(code) = printed {
            return code;
        }
    }
    exit::OK
}
