//! The handshake, in both eras and across them.

use super::*;
use crate::types::{CacheScope, ServerCapabilities};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn connecting(mode: Mode) -> Harness {
    let mut harness = Harness::new(client_config(Wire::Pipe));
    harness.engine.connect(harness.now, mode);
    harness
}

fn initialize_result(id: &str, version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"result":{{"protocolVersion":"{version}","capabilities":{{}},"serverInfo":{{"name":"s","version":"1"}}}}}}"#
    )
}

fn discover_result(versions: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"result":{{"supportedVersions":[{versions}],"capabilities":{{}}}}}}"#
    )
}

#[test]
fn a_modern_answer_to_the_probe_stays_modern() {
    let mut harness = connecting(Mode::Auto);
    assert!(harness.written()[0].contains("server/discover"));
    harness.hear(&discover_result(r#""2026-07-28","2025-11-25""#));
    assert!(matches!(harness.events().as_slice(), [Event::Connected(_)]));
    assert_eq!(harness.engine.version(), Some(ProtocolVersion::V2026_07_28));
    assert!(harness.written().is_empty());
}

#[test]
fn any_other_error_falls_back_to_initialize() {
    for code in [-32601, -32602, -32600, -32000, 0] {
        let mut harness = connecting(Mode::Auto);
        harness.written();
        harness.hear(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"?"}}}}"#
        ));
        let frames = harness.written();
        assert!(frames.len() == 1 && frames[0].contains("\"initialize\""));
        harness.hear(&initialize_result("2", "2025-06-18"));
        assert!(matches!(harness.events().as_slice(), [Event::Connected(_)]));
        assert_eq!(harness.engine.version(), Some(ProtocolVersion::V2025_06_18));
        assert_eq!(harness.written(), [INITIALIZED]);
    }
}

#[test]
fn five_seconds_of_silence_fall_back_to_initialize() {
    let mut harness = connecting(Mode::Auto);
    harness.written();
    harness.pass(Duration::from_secs(5));
    let frames = harness.written();
    assert!(
        frames.len() == 1 && frames[0].contains("\"initialize\""),
        "never-initialize"
    );
}

#[test]
fn a_modern_server_that_speaks_no_version_of_ours_but_a_legacy_one_is_initialized() {
    let mut harness = connecting(Mode::Auto);
    harness.written();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?","data":{"supported":["2031-01-01","2025-06-18"],"requested":"2026-07-28"}}}"#);
    assert!(harness.written()[0].contains("2025-06-18"));
}

/// 2026-07-28, basic/versioning: a client picks a version from the server's list, and asks again.
#[test]
fn a_server_that_names_our_revision_is_asked_again_once() {
    let refusal = |id: u32| {
        let data = r#"{"supported":["2026-07-28"],"requested":"?"}"#;
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"?","data":{data}}}}}"#
        )
    };
    for mode in [Mode::Auto, Mode::Modern] {
        let mut harness = connecting(mode);
        harness.written();
        harness.hear(&refusal(1));
        assert!(harness.written()[0].contains("server/discover"));
        let result =
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
        harness.hear(&format!(r#"{{"jsonrpc":"2.0","id":2,"result":{result}}}"#));
        assert_eq!(harness.engine.version(), Some(ProtocolVersion::V2026_07_28));

        let mut harness = connecting(mode);
        harness.written();
        harness.hear(&refusal(1));
        harness.written();
        harness.hear(&refusal(2));
        assert!(harness.written().is_empty());
        assert!(matches!(
            harness.engine.poll_event(),
            Some(Event::ConnectFailed(Outcome::Refused(_)))
        ));
    }
}

#[test]
fn a_modern_server_with_no_version_in_common_is_a_clear_failure() {
    for mode in [Mode::Auto, Mode::Modern] {
        let mut harness = connecting(mode);
        harness.written();
        harness.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?","data":{"supported":["2031-01-01"],"requested":"2026-07-28"}}}"#);
        assert!(matches!(
            harness.events().as_slice(),
            [Event::ConnectFailed(Outcome::Refused(_))]
        ));
        assert!(harness.written().is_empty());
    }
}

#[test]
fn modern_only_does_not_fall_back() {
    let mut harness = connecting(Mode::Modern);
    harness.written();
    harness.hear(&error_for("1"));
    assert!(matches!(
        harness.events().as_slice(),
        [Event::ConnectFailed(Outcome::Refused(_))]
    ));
}

#[test]
fn a_server_that_dies_on_the_probe_is_lost() {
    let mut harness = connecting(Mode::Auto);
    harness.written();
    harness.engine.handle_input_ended(harness.now, LINK);
    assert!(matches!(
        harness.events()[0],
        Event::ConnectFailed(Outcome::Lost { .. })
    ));
}

#[test]
fn http_falls_back_on_the_statuses_that_mean_unknown_and_on_no_other() {
    for (status, falls_back) in [
        (400, true),
        (404, true),
        (405, true),
        (401, false),
        (403, false),
        (500, false),
        (503, false),
    ] {
        let mut harness = Harness::new(client_config(Wire::Http));
        harness.engine.connect(harness.now, Mode::Auto);
        let exchange = harness.opened();
        harness.written_on(exchange);
        let cause = LossKind::HttpStatus(status).into();
        harness
            .engine
            .handle_exchange_lost(harness.now, exchange, cause, false);
        let failed = harness
            .events()
            .iter()
            .any(|event| matches!(event, Event::ConnectFailed(_)));
        assert_eq!(!failed, falls_back, "{status}");
    }
}

#[test]
fn a_probe_that_times_out_on_http_says_nothing_about_eras() {
    let mut harness = Harness::new(client_config(Wire::Http));
    harness.engine.connect(harness.now, Mode::Auto);
    let exchange = harness.opened();
    harness.written_on(exchange);
    harness.pass(Duration::from_secs(5));
    assert!(matches!(
        harness.events().as_slice(),
        [Event::ConnectFailed(Outcome::TimedOut { .. })]
    ));
}

#[test]
fn a_version_that_was_not_offered_is_a_violation() {
    let mut harness = connecting(Mode::Legacy);
    harness.written();
    harness.hear(&initialize_result("1", "1999-01-01"));
    assert!(matches!(
        harness.events().as_slice(),
        [Event::ConnectFailed(Outcome::Violated(Violation::VersionNotOffered(version)))]
            if version == "1999-01-01"
    ));
}

#[test]
fn an_introduction_that_lacks_something_is_a_violation_that_names_it() {
    let mut harness = connecting(Mode::Legacy);
    harness.written();
    harness.hear(
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
    );
    let events = harness.events();
    let [Event::ConnectFailed(Outcome::Violated(violation))] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert!(violation.to_string().contains("serverInfo"), "{violation}");
}

#[test]
fn initialize_is_never_cancelled_on_the_wire() {
    let mut harness = connecting(Mode::Legacy);
    harness.written();
    harness.engine.shutdown(harness.now, Shutdown::Now);
    assert!(harness.written().is_empty(), "never-initialize");
    assert!(matches!(
        harness.events()[0],
        Event::ConnectFailed(Outcome::Cancelled { .. })
    ));
}

#[test]
fn no_call_begins_before_the_conversation_is_open() {
    let mut harness = connecting(Mode::Auto);
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let outcome = harness.engine.request(harness.now, ask).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Rejected(Rejection::NotConnected)
    ));
    let calls = &harness.engine.ledger().calls;
    assert_eq!((calls.started(), calls.ended_as(End::Rejected)), (2, 1));
}

#[test]
fn connecting_twice_connects_once() {
    let mut harness = connecting(Mode::Auto);
    harness.engine.connect(harness.now, Mode::Auto);
    assert_eq!(harness.written().len(), 1);
}

// ── the server ──

fn fresh_server() -> Harness {
    Harness::new(server_config(Wire::Pipe))
}

fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

#[test]
fn a_server_answers_with_the_version_it_was_asked_for() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut harness = fresh_server();
        harness.hear(&initialize(version));
        assert!(harness.written()[0].contains(version));
        assert_eq!(harness.engine.version().unwrap().as_str(), version);
        harness.start("2");
    }
}

#[test]
fn a_server_answers_an_unknown_version_with_its_latest_legacy_one() {
    for version in ["1999-01-01", "2026-07-28", "2099-01-01"] {
        let mut harness = fresh_server();
        harness.hear(&initialize(version));
        assert!(harness.written()[0].contains("2025-11-25"));
    }
}

#[test]
fn initialize_twice_is_refused() {
    let mut harness = fresh_server();
    harness.hear(&initialize("2025-11-25"));
    harness.hear(&initialize("2025-11-25").replace("\"id\":1", "\"id\":2"));
    assert!(harness.written()[1].contains("sent twice"));
}

/// It would open the legacy era for a peer that uses the modern one.
#[test]
fn a_modern_initialize_is_an_unknown_method() {
    let mut harness = fresh_server();
    let modern = initialize("2025-11-25").replace(
        "\"capabilities\"",
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"capabilities""#,
    );
    harness.hear(&modern);
    let refusal = &harness.written()[0];
    assert!(refusal.contains("-32601"), "{refusal}");
    assert_eq!(harness.engine.version(), None);
}

#[test]
fn a_modern_only_server_names_its_versions_when_it_is_initialized() {
    let mut config = server_config(Wire::Pipe);
    config.versions = vec![ProtocolVersion::V2026_07_28];
    let mut harness = Harness::new(config);
    harness.hear(&initialize("2025-11-25"));
    let frame = harness.written().remove(0);
    assert!(frame.contains("-32022") && frame.contains(r#""supported":["2026-07-28"]"#));
}

#[test]
fn discover_tells_all_versions() {
    let mut config = server_config(Wire::Pipe);
    let mut capabilities = ServerCapabilities::new();
    capabilities.tools = Some(crate::types::ListCapability::new());
    config.identity = Identity::Server {
        info: Implementation::new("orders", "3"),
        capabilities,
        instructions: Some("Ship with care.".into()),
        ttl_ms: 5000,
        cache_scope: CacheScope::Public,
    };
    let mut harness = Harness::new(config);
    harness.hear(&modern_tool_call("1").replace("tools/call", "server/discover"));
    let value: serde_json::Value = serde_json::from_str(&harness.written()[0]).unwrap();
    let result = &value["result"];
    assert_eq!(result["supportedVersions"][0], "2026-07-28");
    assert_eq!(result["resultType"], "complete");
    assert_eq!(result["capabilities"], serde_json::json!({"tools": {}}));
    assert_eq!(result["instructions"], "Ship with care.");
    assert_eq!(
        (&result["ttlMs"], &result["cacheScope"]),
        (&5000.into(), &"public".into())
    );
    assert_eq!(
        result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"],
        "orders"
    );
}

#[test]
fn a_request_without_meta_before_initialize_is_told_what_to_do() {
    let mut harness = fresh_server();
    harness.hear(&tool_call("1"));
    let frame = harness.written().remove(0);
    assert!(
        frame.contains("-32602") && frame.contains("initialize"),
        "{frame}"
    );
    assert!(
        frame.contains("io.modelcontextprotocol/protocolVersion"),
        "{frame}"
    );
}

#[test]
fn ping_is_answered_before_initialize() {
    let mut harness = fresh_server();
    harness.hear(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert!(harness.written()[0].contains("\"result\":{}"));
}

#[test]
fn a_modern_request_in_a_version_we_do_not_speak_is_refused_with_the_list() {
    let mut harness = fresh_server();
    for version in ["2031-01-01", "2025-11-25"] {
        harness.hear(&modern_tool_call("1").replace("2026-07-28", version));
        let frame = harness.written().remove(0);
        assert!(
            frame.contains("-32022") && frame.contains(version),
            "{frame}"
        );
    }
}

#[test]
fn a_modern_request_without_capabilities_is_malformed() {
    let mut harness = fresh_server();
    harness.hear(&modern_tool_call("1").replace("clientCapabilities", "clientNothing"));
    let frame = harness.written().remove(0);
    assert!(
        frame.contains("-32602") && frame.contains("clientCapabilities"),
        "{frame}"
    );
}

#[test]
fn a_modern_request_needs_no_initialize_and_does_not_open_the_legacy_era() {
    let mut harness = fresh_server();
    harness.hear(&modern_tool_call("1"));
    harness.started();
    harness.hear(&tool_call("2"));
    assert!(harness.written()[0].contains("-32602"));
}

#[test]
fn meta_of_the_wrong_type_is_refused_by_name() {
    for (meta, named) in [
        (r#"{"_meta":7}"#, "`_meta` must be an object"),
        (r#"{"_meta":{"progressToken":1.5}}"#, "progressToken"),
        (
            r#"{"_meta":{"io.modelcontextprotocol/protocolVersion":7}}"#,
            "protocolVersion` must be a string",
        ),
    ] {
        let mut harness = Harness::server(Era::Legacy, Wire::Pipe);
        harness.hear(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{meta}}}"#
        ));
        let frame = harness.written().remove(0);
        assert!(frame.contains("-32602") && frame.contains(named), "{frame}");
    }
}

#[test]
fn on_http_no_call_overtakes_the_last_word_of_the_handshake() {
    let mut harness = Harness::new(client_config(Wire::Http));
    harness.engine.connect(harness.now, Mode::Legacy);
    let exchange = harness.opened();
    harness.written_on(exchange);
    harness.hear_on(exchange, &initialize_result("1", "2025-11-25"));
    assert!(harness.events().is_empty());
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let outcome = harness.engine.request(harness.now, ask).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Rejected(Rejection::NotConnected)
    ));
    let lane = harness
        .transmits()
        .into_iter()
        .find_map(|transmit| match transmit {
            Transmit::Write(lane) => Some(lane),
            Transmit::Close { .. } => None,
        });
    assert_eq!(harness.written_on(lane.unwrap()), [INITIALIZED]);
    assert!(matches!(harness.events().as_slice(), [Event::Connected(_)]));
}

#[test]
fn initialize_cannot_be_asked_like_a_call() {
    let mut harness = Harness::client(Era::Legacy, Wire::Pipe);
    let ask = Ask::new("initialize", RawJson::empty_object());
    let outcome = harness.engine.request(harness.now, ask).unwrap_err();
    assert!(matches!(outcome, Outcome::Rejected(Rejection::NotAllowed)));
}
