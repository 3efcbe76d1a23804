//! The tool on a terminal: a bar, a prompt, Ctrl-C. The terminal is that of `script`.

use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::{BELAY, STATE, Scratch, belay_command};

/// A command on a terminal of its own.
pub(crate) struct Terminal {
    child: Child,
    keyboard: ChildStdin,
    screen: ChildStdout,
    shown: String,
}

impl Terminal {
    pub(crate) fn start(command: &str) -> Self {
        Self::start_in(".", command)
    }

    pub(crate) fn start_in(folder: impl AsRef<std::path::Path>, command: &str) -> Self {
        let mut child = Command::new("script")
            .args([
                "--quiet",
                "--flush",
                "--return",
                "--command",
                command,
                "/dev/null",
            ])
            .env("BELAY", BELAY)
            .env(STATE.0, STATE.1)
            .current_dir(folder)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .unwrap();
        Self {
            keyboard: child.stdin.take().unwrap(),
            screen: child.stdout.take().unwrap(),
            shown: String::new(),
            child,
        }
    }

    pub(crate) async fn type_in(&mut self, keys: &str) {
        self.keyboard.write_all(keys.as_bytes()).await.unwrap();
        self.keyboard.flush().await.unwrap();
    }

    /// Waits until something is on the screen that was not there before.
    pub(crate) async fn until(&mut self, text: &str) {
        let from = self.shown.len();
        let reading = async {
            let mut buffer = [0; 1024];
            while !self.shown[from..].contains(text) {
                let count = self.screen.read(&mut buffer).await.unwrap();
                assert_ne!(count, 0, "it ended with {:?}", self.shown);
                self.shown
                    .push_str(&String::from_utf8_lossy(&buffer[..count]));
            }
        };
        let read = tokio::time::timeout(Duration::from_secs(20), reading).await;
        assert!(read.is_ok(), "{text:?} never came: {:?}", self.shown);
    }

    pub(crate) async fn ended(mut self) -> (Option<i32>, String) {
        let mut rest = Vec::new();
        self.screen.read_to_end(&mut rest).await.unwrap();
        self.shown.push_str(&String::from_utf8_lossy(&rest));
        let status = self.child.wait().await.unwrap();
        (status.code(), self.shown)
    }
}

#[tokio::test]
async fn progress_is_a_bar_that_goes_away() {
    let mut terminal = Terminal::start("$BELAY call count to=3 delay_ms=50 -- $BELAY serve");
    terminal
        .until("[##########                    ] 1 of 3")
        .await;
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(0));
    assert!(
        shown.contains("[####################          ] 2 of 3"),
        "{shown:?}"
    );
    let last = shown.rsplit("\x1b[2K").next().unwrap();
    assert_eq!(last, "3\r\n", "only the result is left: {shown:?}");
}

#[tokio::test]
async fn a_form_is_filled_in_at_the_prompt() {
    let call = "$BELAY call --era legacy ask question=Why -- $BELAY serve";
    let mut terminal = Terminal::start(call);
    terminal.until("answer (optional): ").await;
    // Nothing is sent before it was seen, and it can be changed.
    terminal.type_in("why not\n").await;
    terminal.until(r#"{"answer":"why not"}"#).await;
    terminal.type_in("change\n").await;
    terminal.until("answer (optional): ").await;
    terminal.type_in("because\n").await;
    terminal
        .until("Send this answer (send, change, decline): ")
        .await;
    terminal.type_in("send\n").await;
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(0), "{shown:?}");
    assert!(
        shown.contains("serve asks:\r\n> Why") && shown.contains(r#""answer":"because""#),
        "{shown:?}"
    );

    // Ctrl-D declines.
    let mut terminal = Terminal::start(call);
    terminal.until("answer (optional): ").await;
    terminal.type_in("\x04").await;
    let (_, shown) = terminal.ended().await;
    assert!(shown.contains("decline"), "{shown:?}");
}

#[tokio::test]
async fn a_form_without_a_terminal_is_refused_and_told() {
    let output = belay_command()
        .args([
            "call",
            "--era",
            "legacy",
            "ask",
            "question=Why",
            "--",
            BELAY,
            "serve",
        ])
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    assert_eq!(output.status.code(), Some(9));
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(
        told.contains("stdin or stderr is not a terminal: Why"),
        "{told}"
    );
}

#[tokio::test]
async fn ctrl_c_once_cancels_and_twice_kills() {
    let heard = Scratch::new("heard");
    let server = format!("sh -c 'tee {} | $BELAY serve'", heard.0.display());
    let mut terminal = Terminal::start(&format!("$BELAY call hang -- {server}"));
    belay_testkit::until("it hangs", || heard.text().contains("\"hang\"")).await;
    terminal.type_in("\x03").await;
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(130), "{shown:?}");
    // `tee` is a process of its own, and may write what it has read a little later.
    belay_testkit::until("it was told", || heard.text().contains("interrupted")).await;

    // A server that does not go by itself.
    let (heard, pid) = (Scratch::new("heard"), Scratch::new("pid"));
    let server = format!(
        "sh -c 'echo $$ > {}; trap \"\" TERM; tee {} | $BELAY serve; while :; do sleep 1; done'",
        pid.0.display(),
        heard.0.display()
    );
    let mut terminal = Terminal::start(&format!("$BELAY call hang -- {server}"));
    belay_testkit::until("it hangs", || heard.text().contains("\"hang\"")).await;
    terminal.type_in("\x03").await;
    belay_testkit::until("it was told", || heard.text().contains("interrupted")).await;
    terminal.type_in("\x03").await;
    let (code, shown) = terminal.ended().await;
    assert_eq!(code, Some(130), "{shown:?}");
    crate::support::until_gone(pid.number().await, Duration::from_secs(5)).await;
}

#[tokio::test]
async fn in_a_pipe_there_is_no_bar_and_no_colour() {
    let output = belay_command()
        .args(["call", "count", "to=2", "delay_ms=1", "--", BELAY, "serve"])
        .output()
        .await
        .unwrap();
    assert_eq!(output.stdout, b"2\n");
    assert_eq!(output.stderr, b"1 of 2\n2 of 2\n");
}
