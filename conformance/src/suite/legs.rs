//! The four legs: two revisions, and a server and a client for each.

use std::fmt;
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::scenarios::{Scenario, Verdict, verdicts};

/// The paths of the suite and of the programs under test.
pub(super) struct Suite {
    pub(super) node: PathBuf,
    pub(super) script: PathBuf,
    pub(super) server: PathBuf,
    pub(super) client: PathBuf,
    pub(super) folder: PathBuf,
}

/// Which side of Belay is tested.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Side {
    Server,
    Client,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Server => "server",
            Self::Client => "client",
        }
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    pub(super) revision: &'static str,
    pub(super) side: Side,
}

impl Leg {
    /// The name of a scenario in the baseline.
    pub(super) fn entry(self, scenario: &str) -> String {
        format!("{self} {scenario}")
    }
}

impl fmt::Display for Leg {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.revision, self.side.name())
    }
}

/// The timeout of a scenario in milliseconds. It is long, because the machine may be busy.
const TIMEOUT: &str = "60000";

impl Suite {
    fn command(&self) -> Command {
        let mut command = Command::new(&self.node);
        command.arg(&self.script).stdin(Stdio::null());
        command
    }

    /// Lists the scenarios that a revision requires.
    pub(super) fn list(&self, revision: &str) -> Result<String, String> {
        let mut list = self.command();
        list.args(["list", "--requirements", revision]);
        let output = list
            .output()
            .map_err(|error| format!("{}: {error}", self.node.display()))?;
        match output.status.success() {
            true => Ok(String::from_utf8_lossy(&output.stdout).into_owned()),
            false => Err(String::from_utf8_lossy(&output.stderr).into_owned()),
        }
    }

    /// Runs a leg. The suite starts all clients at once, and some scenarios have time windows of
    /// half a second, so a busy machine fails some of them. A scenario with an unexpected verdict
    /// is run once more, alone.
    pub(super) fn run(
        &self,
        leg: Leg,
        scenarios: &[Scenario],
        unexpected: impl Fn(&Scenario, &Verdict) -> bool,
    ) -> Result<Vec<(Scenario, Verdict)>, String> {
        let server = match leg.side {
            Side::Server => Some(Server::start(&self.server)?),
            Side::Client => None,
        };
        let folder = self.folder.join(leg.revision).join(leg.side.name());
        let all = folder.join("all");
        println!("running {leg}");
        self.run_some(leg, &server, &all, &["--requirements", leg.revision])?;
        let mut found = verdicts(&all, leg.side);
        for scenario in scenarios {
            let verdict = found.get(&scenario.name).cloned().unwrap_or_default();
            if unexpected(scenario, &verdict) {
                println!("running {leg} {} alone", scenario.name);
                let name = scenario.name.as_str();
                let which = [
                    "--scenario",
                    name,
                    "--spec-version",
                    leg.revision,
                    "--force",
                ];
                let alone = folder.join("alone").join(name);
                self.run_some(leg, &server, &alone, &which)?;
                found.extend(verdicts(&alone, leg.side));
            }
        }
        let verdicts = scenarios.iter().map(|scenario| {
            let verdict = found.get(&scenario.name).cloned().unwrap_or_default();
            (scenario.clone(), verdict)
        });
        Ok(verdicts.collect())
    }

    fn run_some(
        &self,
        leg: Leg,
        server: &Option<Server>,
        folder: &Path,
        which: &[&str],
    ) -> Result<(), String> {
        let problem = |error: std::io::Error| format!("{}: {error}", folder.display());
        // Removes the verdicts of the previous run.
        let _ = std::fs::remove_dir_all(folder);
        std::fs::create_dir_all(folder).map_err(problem)?;
        let log = std::fs::File::create(folder.join("log.txt")).map_err(problem)?;
        let mut command = self.command();
        command.arg(leg.side.name());
        match server {
            Some(server) => command.arg("--url").arg(&server.url),
            None => command.arg("--command").arg(&self.client),
        };
        command
            .args(which)
            .args(["--timeout", TIMEOUT])
            .arg("-o")
            .arg(folder);
        command
            .stdout(log.try_clone().map_err(problem)?)
            .stderr(log);
        // The exit status is ignored, since a client that never connects passes. The checks decide.
        command.status().map_err(problem)?;
        Ok(())
    }
}

/// The server under test, which is stopped on drop.
struct Server {
    child: Child,
    url: String,
}

impl Server {
    fn start(program: &Path) -> Result<Self, String> {
        let problem = |error: std::io::Error| format!("{}: {error}", program.display());
        // A port that was free a moment ago.
        let address = TcpListener::bind("127.0.0.1:0")
            .and_then(|listener| listener.local_addr())
            .map_err(problem)?;
        let mut command = Command::new(program);
        command.args(["--addr", &address.to_string()]);
        let child = command.stdin(Stdio::null()).spawn().map_err(problem)?;
        let server = Self {
            child,
            url: format!("http://localhost:{}/mcp", address.port()),
        };
        let until = Instant::now() + Duration::from_secs(30);
        while TcpStream::connect(address).is_err() {
            if Instant::now() > until {
                return Err(format!("{} does not listen", program.display()));
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
