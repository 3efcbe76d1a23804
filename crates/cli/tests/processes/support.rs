//! Processes to speak to.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use belay::Client;
use belay::client::Mode;
use belay::types::CallToolResult;
use belay_testkit::Peer;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};
use tokio::process::{Child, Command};

pub(crate) const BELAY: &str = env!("CARGO_BIN_EXE_belay");
pub(crate) const MODES: [Mode; 2] = [Mode::Legacy, Mode::Modern];

/// Where the tool keeps its state in tests: never in the home of whoever runs them.
pub(crate) const STATE: (&str, &str) = (
    "XDG_STATE_HOME",
    concat!(env!("CARGO_TARGET_TMPDIR"), "/state"),
);

/// The tool, with a state of its own.
pub(crate) fn belay_command() -> Command {
    let mut command = Command::new(BELAY);
    command.env(STATE.0, STATE.1);
    command
}

/// A client of `belay serve`.
pub(crate) async fn client(mode: Mode) -> Client {
    let mut command = std::process::Command::new(BELAY);
    command.arg("serve");
    client_of(mode, command).await
}

/// A client of a shell script in which `$BELAY` is the tool.
pub(crate) async fn client_of_script(mode: Mode, script: &str) -> Client {
    let mut command = std::process::Command::new("sh");
    command.args(["-c", script]).env("BELAY", BELAY);
    client_of(mode, command).await
}

pub(crate) async fn client_of(mode: Mode, command: std::process::Command) -> Client {
    let builder = Client::builder("test", "1").mode(mode);
    builder.spawn(command).await.unwrap()
}

pub(crate) fn text(result: &CallToolResult) -> &str {
    result.content[0].as_text().unwrap()
}

/// How many `hang`s the server says are running.
pub(crate) async fn active(client: &Client) -> usize {
    let result = client.call_tool("active", json!({})).await.unwrap();
    text(&result).parse().unwrap()
}

pub(crate) async fn until_active(client: &Client, count: usize) {
    let until = Instant::now() + Duration::from_secs(20);
    while Instant::now() < until {
        if active(client).await == count {
            return;
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    panic!("it never came to {count} active");
}

pub(crate) fn signal(pid: u32, signal: Signal) {
    kill_process(Pid::from_raw(pid as i32).unwrap(), signal).unwrap();
}

/// Whether a process exists; a zombie does.
pub(crate) fn exists(pid: u32) -> bool {
    PathBuf::from(format!("/proc/{pid}")).exists()
}

pub(crate) async fn until_gone(pid: u32, within: Duration) {
    let until = Instant::now() + within;
    while exists(pid) {
        assert!(Instant::now() < until, "process {pid} is still there");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// The processes that were started with this variable.
pub(crate) fn processes_with(mark: &str) -> BTreeSet<u32> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let numbers = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    let has_mark = |pid: &u32| {
        let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
        environment
            .split(|byte| *byte == 0)
            .any(|it| it == mark.as_bytes())
    };
    numbers.filter(has_mark).collect()
}

pub(crate) async fn until_nothing_has(mark: &str, within: Duration) {
    let until = Instant::now() + within;
    while !processes_with(mark).is_empty() {
        assert!(
            Instant::now() < until,
            "still there: {:?}",
            processes_with(mark)
        );
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// Resident memory, in bytes.
pub(crate) fn memory(pid: u32) -> usize {
    status_bytes(pid, "VmRSS:")
}

/// The most that it ever was.
pub(crate) fn peak_memory(pid: u32) -> usize {
    status_bytes(pid, "VmHWM:")
}

/// How long a process has run, in all its threads.
pub(crate) fn processor_time(pid: u32) -> Duration {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    // The name, in brackets, may have anything in it; the two times are fields 14 and 15.
    let (_, fields) = stat.rsplit_once(')').unwrap();
    let ticks = fields.split_whitespace().skip(11).take(2);
    let ticks: u64 = ticks.map(|it| it.parse::<u64>().unwrap()).sum();
    // A hundred ticks are a second, on every Linux.
    Duration::from_millis(10 * ticks)
}

fn status_bytes(pid: u32, name: &str) -> usize {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap();
    let line = status.lines().find(|line| line.starts_with(name)).unwrap();
    let kilobytes: usize = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    kilobytes << 10
}

/// Runs a test again, in a process whose memory nobody else uses. True if this is that process.
pub(crate) async fn is_alone(test: &str) -> bool {
    const ALONE: &str = "BELAY_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return true;
    }
    let mut again = Command::new(std::env::current_exe().unwrap());
    again.args([test, "--exact", "--nocapture"]).env(ALONE, "1");
    let done = again.kill_on_drop(true).output().await.unwrap();
    let said = String::from_utf8_lossy(&done.stdout);
    assert!(
        said.contains("1 passed"),
        "{said}{}",
        String::from_utf8_lossy(&done.stderr)
    );
    print!("{said}");
    false
}

/// A file of our own, gone when this is.
pub(crate) struct Scratch(pub(crate) PathBuf);

impl Scratch {
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, std::sync::atomic::Ordering::SeqCst);
        let file = format!("belay-test-{}-{count}-{name}", std::process::id());
        Self(std::env::temp_dir().join(file))
    }

    /// Writes it so that only we can change it, whatever the umask is.
    pub(crate) fn write_private(&self, text: &str) {
        use std::os::unix::fs::PermissionsExt;
        std::fs::write(&self.0, text).unwrap();
        std::fs::set_permissions(&self.0, std::fs::Permissions::from_mode(0o600)).unwrap();
    }

    pub(crate) fn text(&self) -> String {
        std::fs::read_to_string(&self.0).unwrap_or_default()
    }

    /// Its text, once it has some.
    pub(crate) async fn number(&self) -> u32 {
        for _ in 0..10_000 {
            if let Ok(number) = self.text().trim().parse() {
                return number;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        panic!("{} never got its number", self.0.display());
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}

/// A request as a client of this era writes it, with its id as its progress token.
pub(crate) fn request(mode: Mode, id: impl Into<Value>, method: &str, mut params: Value) -> Value {
    let id: Value = id.into();
    let mut meta = json!({ "progressToken": id });
    if mode == Mode::Modern {
        meta["io.modelcontextprotocol/protocolVersion"] = json!("2026-07-28");
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
    }
    params["_meta"] = meta;
    json!({ "jsonrpc": "2.0", "id": id, "method": method, "params": params })
}

/// A server process that a test speaks to line by line.
pub(crate) struct RawServer {
    pub(crate) child: Child,
    pub(crate) peer: Peer,
    pub(crate) log: Scratch,
    mode: Mode,
}

impl RawServer {
    /// `belay serve`, opened in this era.
    pub(crate) async fn start(mode: Mode) -> Self {
        let log = Scratch::new("cleaned");
        let mut child = Command::new(BELAY)
            .arg("serve")
            .env("BELAY_DEMO_CLEANUP_LOG", &log.0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        let peer = Peer::new(child.stdout.take().unwrap(), child.stdin.take().unwrap());
        let mut server = Self {
            child,
            peer,
            log,
            mode,
        };
        match mode {
            Mode::Legacy => server.peer.initialize().await,
            // There is no handshake; but it must be there.
            _ => server.until_active(0).await,
        }
        server
    }

    /// Calls a tool, without waiting for anything.
    pub(crate) async fn call(&mut self, id: impl Into<Value>, tool: &str, arguments: Value) {
        let params = json!({ "name": tool, "arguments": arguments });
        let request = request(self.mode, id, "tools/call", params);
        self.peer.say(request).await;
    }

    /// Calls `rollback`, and waits until it runs.
    pub(crate) async fn begin_rollback(&mut self, id: i64, millis: u64) {
        self.call(id, "rollback", json!({ "ms": millis })).await;
        let runs = self.peer.expect("notifications/progress").await;
        assert_eq!(runs["params"]["progressToken"], id);
    }

    pub(crate) async fn cancel(&mut self, id: impl Into<Value>) {
        let id: Value = id.into();
        let params = json!({ "requestId": id });
        self.peer.tell("notifications/cancelled", params).await;
    }

    /// Asks how many hang, until that many do.
    pub(crate) async fn until_active(&mut self, count: usize) {
        let expected = count.to_string();
        for attempt in 0..10_000 {
            let id = format!("active-{attempt}");
            self.call(id.clone(), "active", json!({})).await;
            let answer = self.peer.expect_answer(id).await;
            if answer["result"]["content"][0]["text"] == *expected {
                return;
            }
        }
        panic!("it never came to {count} active");
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id().unwrap()
    }

    pub(crate) fn cleaned(&self) -> usize {
        self.log
            .text()
            .lines()
            .filter(|line| *line == "cleaned")
            .count()
    }

    /// Waits for its end: how it ended, how long that took, and what it said on stderr.
    pub(crate) async fn ended(&mut self) -> (ExitStatus, Duration, String) {
        use tokio::io::AsyncReadExt;
        let start = Instant::now();
        let ended = tokio::time::timeout(Duration::from_secs(30), self.child.wait()).await;
        let status = ended.expect("it should end").unwrap();
        let after = start.elapsed();
        let mut noise = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut noise).await.unwrap();
        }
        (status, after, noise)
    }
}
