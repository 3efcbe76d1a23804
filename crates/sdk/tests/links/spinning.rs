//! Handlers that compute for long and never yield: on a runtime with two threads they hold up nobody
//! but themselves (**stop-is-real**, **bounded**); with one thread they hold up everything until they
//! are done, and nothing is lost.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};
use std::time::{Duration, Instant};

use belay::http::Endpoint;
use belay::{Context, Server, Tool};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper_util::rt::{TokioExecutor, TokioIo};
use tokio::runtime::Runtime;

/// How long it spins.
const SPIN: Duration = Duration::from_secs(3);

/// Others must be served much sooner. (By itself it takes some ten milliseconds.)
const SOON: Duration = Duration::from_secs(1);

#[derive(Default)]
struct Seen {
    spinning: AtomicUsize,
    hanging: AtomicUsize,
}

/// Counts as long as it exists.
struct Counted(Arc<Seen>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.hanging.fetch_sub(1, SeqCst);
    }
}

fn spin(seen: &Seen) {
    seen.spinning.fetch_add(1, SeqCst);
    let begun = Instant::now();
    while begun.elapsed() < SPIN {
        std::hint::spin_loop();
    }
    seen.spinning.fetch_sub(1, SeqCst);
}

fn server(seen: &Arc<Seen>) -> Server {
    let (at_once, later, hangs) = (seen.clone(), seen.clone(), seen.clone());
    Server::new("spinning", "1")
        .tool(Tool::new("echo", |_: Context, (): ()| async { "hello" }))
        .tool(Tool::new("spin", move |_: Context, (): ()| {
            let seen = at_once.clone();
            async move { spin(&seen) }
        }))
        .tool(Tool::new("spin_later", move |cx: Context, (): ()| {
            let seen = later.clone();
            async move {
                tokio::task::yield_now().await;
                // Whoever is told of it must not be left to this thread.
                cx.progress(1.0, None, "about to spin").await;
                spin(&seen);
            }
        }))
        .tool(Tool::new("hang", move |_: Context, (): ()| {
            let seen = hangs.clone();
            async move {
                seen.hanging.fetch_add(1, SeqCst);
                let _counted = Counted(seen);
                std::future::pending::<()>().await;
            }
        }))
}

fn runtime(threads: usize) -> Runtime {
    let mut runtime = tokio::runtime::Builder::new_multi_thread();
    runtime.worker_threads(threads).enable_all();
    runtime.build().unwrap()
}

fn until(what: &str, done: impl Fn() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "never: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn request(id: u32, tool: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"{tool}","arguments":{{}},"_meta":{{"progressToken":{id},"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{{}}}}}}}}"#
    )
}

/// A server at the other end of a socket pair, which speaks lines.
fn lines(runtime: &Runtime, seen: &Arc<Seen>) -> (UnixStream, BufReader<UnixStream>) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let server = server(seen);
    runtime.spawn(async move {
        let theirs = tokio::net::UnixStream::from_std(theirs).unwrap();
        let (reader, writer) = theirs.into_split();
        server.serve(reader, writer).await;
    });
    let reader = BufReader::new(ours.try_clone().unwrap());
    (ours, reader)
}

/// The next line that answers this request.
fn answer_to(id: u32, reader: &mut impl BufRead) -> String {
    loop {
        let mut line = String::new();
        assert!(reader.read_line(&mut line).unwrap() > 0, "it hung up");
        if line.contains(&format!("\"id\":{id},")) {
            return line;
        }
    }
}

fn on_a_pipe(spins: &str) {
    let (runtime, seen) = (runtime(2), Arc::new(Seen::default()));
    let (mut ours, mut reader) = lines(&runtime, &seen);
    writeln!(ours, "{}", request(1, "hang")).unwrap();
    until("the first hangs", || seen.hanging.load(SeqCst) == 1);
    // In one write, so that whoever spins and whoever echoes wait behind each other.
    let both = format!("{}\n{}\n", request(2, spins), request(3, "echo"));
    ours.write_all(both.as_bytes()).unwrap();
    let begun = Instant::now();
    until("the second spins", || seen.spinning.load(SeqCst) == 1);
    assert!(answer_to(3, &mut reader).contains("hello"));
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    let begun = Instant::now();
    writeln!(ours, "{}", request(4, "echo")).unwrap();
    assert!(answer_to(4, &mut reader).contains("hello"));
    let cancel = r#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}"#;
    writeln!(ours, "{cancel}").unwrap();
    until("the first is stopped", || seen.hanging.load(SeqCst) == 0);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(seen.spinning.load(SeqCst), 1, "it still spins");
    answer_to(2, &mut reader);
    runtime.shutdown_background();
}

#[test]
fn stop_is_real_on_a_pipe_a_handler_that_spins_at_once_holds_up_nobody() {
    on_a_pipe("spin");
}

#[test]
fn stop_is_real_on_a_pipe_a_handler_that_spins_later_holds_up_nobody() {
    on_a_pipe("spin_later");
}

/// With one thread nobody can go on. When it is done, everything is done that was asked meanwhile.
#[test]
fn with_one_thread_a_handler_that_spins_holds_up_everything_and_nothing_is_lost() {
    let (runtime, seen) = (runtime(1), Arc::new(Seen::default()));
    let (mut ours, mut reader) = lines(&runtime, &seen);
    writeln!(ours, "{}", request(1, "spin")).unwrap();
    until("it spins", || seen.spinning.load(SeqCst) == 1);
    let begun = Instant::now();
    writeln!(ours, "{}", request(2, "echo")).unwrap();
    assert!(answer_to(2, &mut reader).contains("hello"));
    assert!(begun.elapsed() > SPIN / 2, "{:?}", begun.elapsed());
    runtime.shutdown_background();
}

fn listen(runtime: &Runtime, seen: &Arc<Seen>) -> SocketAddr {
    let server = server(seen);
    let (tell, told) = std::sync::mpsc::channel();
    runtime.spawn(async move {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        tell.send(listener.local_addr().unwrap()).unwrap();
        Endpoint::new(server).listen(listener).unwrap().await;
    });
    told.recv().unwrap()
}

fn post(address: SocketAddr, id: u32, tool: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = request(id, tool);
    let length = body.len();
    write!(
        stream,
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nMCP-Protocol-Version: 2026-07-28\r\n\
         Mcp-Method: tools/call\r\nMcp-Name: {tool}\r\nContent-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    stream
}

fn on_http_1(spins: &str) {
    let (runtime, seen) = (runtime(2), Arc::new(Seen::default()));
    let address = listen(&runtime, &seen);
    let hangs = post(address, 1, "hang");
    until("the first hangs", || seen.hanging.load(SeqCst) == 1);
    let _spins = post(address, 2, spins);
    until("the second spins", || seen.spinning.load(SeqCst) == 1);
    let begun = Instant::now();
    let mut echo = post(address, 3, "echo");
    let mut answer = [0; 2048];
    let read = echo.read(&mut answer).unwrap();
    assert!(String::from_utf8_lossy(&answer[..read]).contains("hello"));
    drop(hangs);
    until("the first is stopped", || seen.hanging.load(SeqCst) == 0);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(seen.spinning.load(SeqCst), 1, "it still spins");
    runtime.shutdown_background();
}

#[test]
fn stop_is_real_on_http_1_a_handler_that_spins_at_once_holds_up_nobody() {
    on_http_1("spin");
}

#[test]
fn stop_is_real_on_http_1_a_handler_that_spins_later_holds_up_nobody() {
    on_http_1("spin_later");
}

/// All on one connection.
fn on_http_2(spins: &str) {
    let (runtime, seen) = (runtime(2), Arc::new(Seen::default()));
    let address = listen(&runtime, &seen);
    // The client has threads of its own.
    let client = self::runtime(2);
    let mut sender = client.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let (sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream))
                .await
                .unwrap();
        tokio::spawn(connection);
        sender
    });
    let mut send = |id: u32, tool: &str| {
        let post = http::Request::post("http://localhost/mcp")
            .header("content-type", "application/json")
            .header("accept", "application/json, text/event-stream")
            .header("mcp-protocol-version", "2026-07-28")
            .header("mcp-method", "tools/call")
            .header("mcp-name", tool)
            .body(Full::new(Bytes::from(request(id, tool))))
            .unwrap();
        client.spawn(sender.send_request(post))
    };
    let hangs = send(1, "hang");
    until("the first hangs", || seen.hanging.load(SeqCst) == 1);
    let _spins = send(2, spins);
    until("the second spins", || seen.spinning.load(SeqCst) == 1);
    let begun = Instant::now();
    let echo = send(3, "echo");
    let answer = client.block_on(async {
        let response = echo.await.unwrap().unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    });
    assert!(String::from_utf8_lossy(&answer).contains("hello"));
    hangs.abort();
    until("the first is stopped", || seen.hanging.load(SeqCst) == 0);
    assert!(begun.elapsed() < SOON, "{:?}", begun.elapsed());
    assert_eq!(seen.spinning.load(SeqCst), 1, "it still spins");
    runtime.shutdown_background();
}

#[test]
fn stop_is_real_on_http_2_a_handler_that_spins_at_once_holds_up_nobody() {
    on_http_2("spin");
}

#[test]
fn stop_is_real_on_http_2_a_handler_that_spins_later_holds_up_nobody() {
    on_http_2("spin_later");
}
