//! `belay`: the command-line tool. Parses the command line, runs a command, returns its exit code.

mod arguments;
mod children;
mod commands;
mod config;
mod demo_server;
mod exit;
mod fields;
mod interrupt;
mod known_servers;
mod output;
mod permissions;
mod place;
mod progress;
mod questions;
mod target;
mod trace;
mod warnings;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Call, list and test Model Context Protocol (MCP) servers; no request is ever orphaned.
#[derive(Parser)]
#[command(name = "belay", version, arg_required_else_help = true)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Demo(commands::demo::Demo),
    Serve(commands::serve::Serve),
    List(commands::list::List),
    Call(commands::call::Call),
    Read(commands::read::Read),
    Prompt(commands::prompt::Prompt),
    Listen(commands::listen::Listen),
    Servers(commands::servers::Servers),
    Completions(commands::completions::Completions),
}

fn main() -> ExitCode {
    belay_process::return_large_blocks();
    commands::completions::complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // clap reports help and version as errors. They go to stdout; real errors go to stderr.
            let json = std::env::args_os().any(|word| word == "--json");
            return match error.use_stderr() {
                true if json => output::usage(error.to_string().trim_end(), true).into(),
                true => {
                    let _ = error.print();
                    exit::USAGE.into()
                }
                false => {
                    let _ = error.print();
                    ExitCode::SUCCESS
                }
            };
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            output::tell(&format!("belay: cannot start the async runtime: {error}"));
            return exit::USAGE.into();
        }
    };
    // As with `#[tokio::main]`, dropping the runtime waits for blocking tasks. We leave none.
    let code = runtime.block_on(async {
        match cli.command {
            Command::Demo(demo) => demo.run().await,
            Command::Serve(serve) => serve.run().await,
            Command::List(list) => list.run().await,
            Command::Call(call) => call.run().await,
            Command::Read(read) => read.run().await,
            Command::Prompt(prompt) => prompt.run().await,
            Command::Listen(listen) => listen.run().await,
            Command::Servers(servers) => servers.run(),
            Command::Completions(completions) => completions.run(),
        }
    });
    drop(runtime);
    code.into()
}
