//! The command line and servers on HTTP: mistakes get a clear message, and each end its exit code.

use std::process::Stdio;

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};

use crate::http::{HttpServer, Way};
use crate::support::{BELAY, Scratch, belay_command};

async fn belay(arguments: &[&str]) -> (i32, String, String) {
    belay_with(arguments, &[]).await
}

async fn belay_with(arguments: &[&str], variables: &[(&str, &str)]) -> (i32, String, String) {
    let output = belay_command()
        .args(arguments)
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .output()
        .await
        .unwrap();
    (
        output.status.code().unwrap(),
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    )
}

#[tokio::test]
async fn a_url_is_a_target_like_any_other() {
    let server = HttpServer::start().await;
    for url in [
        server.url(Way::Modern),
        server.url(Way::EventStream),
        format!("{}/mcp", server.address),
        format!(
            "localhost:{}/mcp",
            server.address.split(':').nth(1).unwrap()
        ),
    ] {
        let (code, out, err) = belay(&["call", &url, "echo", "text=hello"]).await;
        assert_eq!((code, out.as_str()), (0, "hello\n"), "{url}: {err}");
    }
    let url = server.url(Way::Modern);
    let (code, out, _) = belay(&["list", &url, "--json"]).await;
    assert_eq!(code, 0);
    assert!(out.contains("\"rollback\""));
    let (code, _, err) = belay(&["call", &url, "hang", "--max-time", "0.5"]).await;
    assert_eq!(code, 6, "{err}");
    let (code, out, _) = belay(&["call", &url, "active"]).await;
    assert_eq!((code, out.as_str()), (0, "0\n"));
    let (code, _, err) = belay(&["call", &url, "echo", "text=hi", "-v", "-H", "X-A: b"]).await;
    assert_eq!(code, 0);
    assert!(err.contains("> ") && err.contains("< "), "{err}");
}

/// A server that says the same to everybody.
async fn always(answer: &'static str) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut request = vec![0; 64 << 10];
                while stream.read(&mut request).await.is_ok_and(|count| count > 0) {
                    let _ = stream.write_all(answer.as_bytes()).await;
                }
            });
        }
    });
    format!("http://{address}/mcp")
}

#[tokio::test]
async fn what_goes_wrong_is_told_with_what_to_do() {
    let login =
        always("HTTP/1.1 401 No\r\nContent-Type: text/html\r\nContent-Length: 6\r\n\r\nlog in")
            .await;
    let page =
        always("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 7\r\n\r\nwelcome")
            .await;
    let moved =
        always("HTTP/1.1 301 No\r\nLocation: https://example.com/mcp\r\nContent-Length: 0\r\n\r\n")
            .await;
    for (arguments, code, shows) in [
        (vec!["list", &login], 3, "Authorization"),
        (vec!["list", &page], 4, "text/html: welcome"),
        (vec!["list", &moved], 4, "https://example.com/mcp"),
        (vec!["list", "http://127.0.0.1:1/mcp"], 4, "refused"),
        (
            vec!["list", "ftp://example.com/mcp"],
            4,
            "https:// or http://",
        ),
        (
            vec!["list", "https://me:secret@example.com/mcp"],
            4,
            "as a header",
        ),
        (vec!["list", &page, "-e", "A=b"], 1, "not to a URL"),
        (
            vec!["list", "-H", "A: b", "--", BELAY, "serve"],
            1,
            "not to a command",
        ),
        (vec!["list", &page, "-H", "nonsense"], 1, "NAME: VALUE"),
        (
            vec!["list", &page, "-H", "A b: c"],
            1,
            "not a valid HTTP header",
        ),
        (
            vec!["list", &page, "--cacert", "/no/such/file"],
            1,
            "/no/such/file",
        ),
        (vec!["serve", "--sse"], 1, "--http"),
        (vec!["serve", "--http", "0.0.0.0:0"], 4, "--allow-host"),
        (
            vec!["serve", "--http", "nonsense"],
            4,
            "cannot serve at nonsense",
        ),
        (
            vec!["serve", "--http", "127.0.0.1:0", "--allow-host", "a b"],
            4,
            "is no host",
        ),
        (
            vec!["serve", "--http", "127.0.0.1:0", "--tls-cert", "x"],
            1,
            "--tls-key",
        ),
    ] {
        let (got, _, err) = belay(&arguments).await;
        assert_eq!(got, code, "{arguments:?}: {err}");
        assert!(err.contains(shows), "{arguments:?}: {err}");
        assert!(!err.contains("panicked"), "{err}");
    }
    let server = HttpServer::start().await;
    let (code, _, err) = belay(&["serve", "--http", &server.address]).await;
    assert_eq!(code, 4);
    assert!(err.contains("in use"), "{err}");
    let (code, _, err) = belay(&["list", &login, "--json"]).await;
    assert_eq!(code, 3);
    assert!(err.contains("\"end\":\"auth\""), "{err}");
}

#[tokio::test]
async fn https_and_the_proxy_on_the_way() {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    let (cert, key) = (Scratch::new("cert.pem"), Scratch::new("key.pem"));
    std::fs::write(&cert.0, made.cert.pem()).unwrap();
    std::fs::write(&key.0, made.signing_key.serialize_pem()).unwrap();
    let (cert, key) = (cert.0.to_str().unwrap(), key.0.to_str().unwrap());
    let server = HttpServer::with(&["--tls-cert", cert, "--tls-key", key]).await;
    let port = server.address.split(':').nth(1).unwrap().to_owned();
    let url = format!("https://localhost:{port}/mcp");

    let (code, _, err) = belay(&["call", &url, "echo", "text=hi"]).await;
    assert_eq!(code, 4);
    assert!(err.contains("certificate"), "{err}");
    let call = ["call", &url, "echo", "text=hi", "--cacert", cert];
    assert_eq!(belay(&call).await.1, "hi\n");

    // By way of somebody who only knows CONNECT.
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let through = format!("http://user:word@{}", proxy.local_addr().unwrap());
    let (asked, mut heard) = tokio::sync::mpsc::unbounded_channel();
    tokio::spawn(async move {
        while let Ok((mut client, _)) = proxy.accept().await {
            let asked = asked.clone();
            tokio::spawn(async move {
                let mut request = vec![0; 4096];
                let count = client.read(&mut request).await.unwrap();
                let request = String::from_utf8_lossy(&request[..count]).into_owned();
                let to = request.split(' ').nth(1).unwrap().to_owned();
                let _ = asked.send(request);
                let mut server = TcpStream::connect(to).await.unwrap();
                client.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
                let _ = copy_bidirectional(&mut client, &mut server).await;
            });
        }
    });
    let proxied = [("HTTPS_PROXY", through.as_str())];
    let (code, out, err) = belay_with(&call, &proxied).await;
    assert_eq!((code, out.as_str()), (0, "hi\n"), "{err}");
    let request = heard.recv().await.unwrap();
    assert!(
        request.starts_with(&format!("CONNECT localhost:{port}")),
        "{request}"
    );
    assert!(
        request
            .to_lowercase()
            .contains("proxy-authorization: basic"),
        "{request}"
    );

    let exempt = [
        ("HTTPS_PROXY", "http://127.0.0.1:1"),
        ("NO_PROXY", "localhost"),
    ];
    assert_eq!(belay_with(&call, &exempt).await.1, "hi\n");
    let (code, _, err) = belay_with(&call, &[("HTTPS_PROXY", "socks5://127.0.0.1:1")]).await;
    assert_eq!(code, 4);
    assert!(err.contains("http://"), "{err}");
}

#[tokio::test]
async fn what_changes_is_told_line_by_line() {
    let server = HttpServer::start().await;
    for (way, era) in [
        (Way::Modern, "modern"),
        (Way::Legacy, "legacy"),
        (Way::EventStream, "auto"),
    ] {
        let url = server.url(way);
        let words = ["listen", &url, "demo://hello", "--count", "1", "--era", era];
        let listening = belay(&words);
        let mut listening = std::pin::pin!(listening);
        // When it has begun to listen cannot be seen from here.
        let (code, out, err) = loop {
            let touch = ["call", &url, "touch", "uri=demo://hello"];
            tokio::select! {
                biased;
                ended = &mut listening => break ended,
                touched = belay(&touch) => assert_eq!(touched.0, 0),
            }
        };
        assert_eq!(
            (code, out.as_str()),
            (0, "updated demo://hello\n"),
            "{way:?} {err}"
        );
    }
    let url = server.url(Way::Modern);
    let (code, _, err) = belay(&["listen", &url, "--count", "0"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    // Time that is over is a failure for whoever waits for something.
    let (code, _, err) = belay(&["listen", &url, "--max-time", "0.5"]).await;
    assert_eq!((code, err.as_str()), (0, ""));
    let waiting = ["listen", &url, "--max-time", "0.5", "--count", "1"];
    let (code, _, err) = belay(&waiting).await;
    assert_eq!(code, 6);
    assert!(err.contains("fewer changes than --count 1"), "{err}");
    // Programs get to read JSON, whatever is told.
    let mute = r#"read asked; echo '{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":"mute","version":"1"}}}'; cat > /dev/null"#;
    let words = ["listen", "--count", "0", "--json", "--era", "legacy"];
    let words = [&words[..], &["--", "sh", "-c", mute]].concat();
    let (code, _, err) = belay(&words).await;
    assert_eq!(code, 0, "{err}");
    assert!(!err.is_empty());
    for line in err.lines() {
        let note: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(
            note["note"]
                .as_str()
                .unwrap()
                .contains("sends no notifications for")
        );
    }
}
