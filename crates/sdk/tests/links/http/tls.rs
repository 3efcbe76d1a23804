//! HTTPS.

use std::time::Duration;

use belay::Client;
use belay::http::{Endpoint, ServerHandle};
use serde_json::json;
use tokio::io::AsyncWriteExt;

use super::Hanging;

/// A server with a certificate of its own, and that certificate.
async fn secured(hanging: &Hanging) -> (ServerHandle, String) {
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let made = rcgen::generate_simple_self_signed(names).unwrap();
    let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
    let listening = Endpoint::new(super::server(hanging))
        .tls(certificate.as_bytes(), key.as_bytes())
        .unwrap()
        .read_timeouts(Duration::from_millis(300), Duration::from_secs(30))
        .bind("127.0.0.1:0")
        .await
        .unwrap();
    (listening, certificate)
}

#[tokio::test]
async fn whoever_trusts_the_certificate_is_served_and_heard_when_it_leaves() {
    let hanging = Hanging::default();
    let (listening, certificate) = secured(&hanging).await;
    let url = format!("https://localhost:{}/mcp", listening.address().port());
    let builder = Client::builder("test", "1").trust(certificate.as_bytes());
    let client = builder.http(&url).await.unwrap();
    let echo = client
        .call_tool("echo", json!({ "text": "hi" }))
        .await
        .unwrap();
    assert_eq!(echo.content[0].as_text(), Some("hi"));
    let calls: Vec<_> = (0..10)
        .map(|_| client.call_tool("hang", json!({})).start())
        .collect();
    hanging.comes_to(10).await;
    drop(calls);
    hanging.comes_to(0).await;
}

#[tokio::test]
async fn whoever_does_not_trust_it_sends_nothing() {
    let hanging = Hanging::default();
    let (listening, _) = secured(&hanging).await;
    let url = format!("https://localhost:{}/mcp", listening.address().port());
    let error = Client::http(&url).await.unwrap_err();
    assert!(error.is_lost() && error.safe_to_retry(), "{error:?}");
    assert!(format!("{error:?}").contains("certificate"), "{error:?}");
    assert_eq!(listening.ledger().requests.started(), 0);
}

#[tokio::test]
async fn whoever_never_shakes_hands_is_not_waited_for() {
    use tokio::io::AsyncReadExt;
    let (listening, _) = secured(&Hanging::default()).await;
    let mut silent = tokio::net::TcpStream::connect(listening.address())
        .await
        .unwrap();
    silent.write_all(b"\x16").await.unwrap();
    let mut rest = Vec::new();
    let closed = tokio::time::timeout(Duration::from_secs(10), silent.read_to_end(&mut rest));
    assert!(closed.await.is_ok());
}

#[tokio::test]
async fn what_is_no_certificate_is_told() {
    let endpoint = || Endpoint::new(belay::Server::new("test", "1"));
    let error = endpoint().tls(b"nonsense", b"nonsense").unwrap_err();
    assert!(error.to_string().contains("the key"), "{error}");
    let error = endpoint()
        .allow_host("not a host")
        .bind("127.0.0.1:0")
        .await;
    assert!(error.unwrap_err().to_string().contains("is no host"));
    let builder = Client::builder("test", "1")
        .trust(b"-----BEGIN CERTIFICATE-----\n!\n-----END CERTIFICATE-----\n");
    let error = builder.http("https://localhost:1/mcp").await.unwrap_err();
    assert!(error.to_string().contains("no certificate"), "{error:?}");
}
