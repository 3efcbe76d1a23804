//! **smallest-scope**: a bad message spoils that message.

use belay::client::Mode;
use serde_json::json;

use crate::support::{MODES, RawServer, client_of_script};

#[tokio::test]
async fn smallest_scope_a_server_survives_garbage() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        server.call(1, "hang", json!({})).await;
        server.until_active(1).await;
        let garbage: [(&[u8], i64); 7] = [
            (b"hello\n", -32700),
            (b"{\"jsonrpc\":\"2.0\",\"id\":\n", -32700),
            (b"\xFF\xFE\n", -32700),
            (b"[]\n", -32600),
            (
                b"{\"jsonrpc\":\"1.0\",\"id\":5,\"method\":\"ping\"}\n",
                -32600,
            ),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":null,\"method\":\"ping\"}\n",
                -32600,
            ),
            (
                b"{\"jsonrpc\":\"2.0\",\"id\":6,\"method\":\"ping\",\"params\":7}\n",
                -32600,
            ),
        ];
        for (line, code) in garbage {
            server.peer.say_raw(line).await;
            let answer = server.peer.hear().await.unwrap();
            assert_eq!(answer["error"]["code"], code, "{answer}");
        }
        // Blank lines and line ends of another kind mean nothing.
        server.peer.say_raw("\n\r\n  \n").await;
        server.until_active(1).await;
    }
}

#[tokio::test]
async fn smallest_scope_a_line_of_ten_mebibytes_is_skipped() {
    for mode in MODES {
        let mut server = RawServer::start(mode).await;
        let line = vec![b'x'; 10 << 20];
        server.peer.say_raw(&line).await;
        server.peer.say_raw("\n").await;
        let answer = server.peer.hear().await.unwrap();
        assert_eq!(answer["error"]["code"], -32600);
        assert!(
            answer["error"]["message"]
                .as_str()
                .unwrap()
                .contains("4194304"),
            "{answer}"
        );
        server
            .call(1, "echo", json!({ "text": "still here" }))
            .await;
        server.peer.expect_answer(1).await;
    }
}

#[tokio::test]
async fn smallest_scope_stray_output_of_a_server_is_passed_over() {
    // It greets, as servers do that print to stdout.
    let script = "echo 'Listening on stdio …'; echo; echo '{}'; exec $BELAY serve";
    for mode in [Mode::Legacy, Mode::Auto] {
        let client = client_of_script(mode, script).await;
        assert!(
            client
                .call_tool("echo", json!({ "text": "hi" }))
                .await
                .is_ok()
        );
        assert_eq!(client.ledger().malformed, 2);
    }
}

#[tokio::test]
async fn smallest_scope_an_answer_that_is_too_long_ends_in_time() {
    let script = r#"
        read probe
        echo '{"jsonrpc":"2.0","id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}'
        read call
        head -c 17000000 /dev/zero | tr '\0' x
        echo
        read call
        echo '{"jsonrpc":"2.0","id":3,"result":{"content":[]}}'
        cat > /dev/null
    "#;
    let client = client_of_script(Mode::Auto, script).await;
    let lost_line = client
        .call_tool("a", json!({}))
        .timeout(std::time::Duration::from_millis(2000));
    assert!(lost_line.await.unwrap_err().is_timeout());
    assert_eq!(client.ledger().malformed, 1);
}
