//! How a conversation is opened, in both eras and between them.

use super::*;
use crate::types::{CacheScope, ServerCapabilities};

const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;

fn connecting(mode: Mode) -> Desk {
    let mut desk = Desk::new(client_config(Wire::Pipe));
    desk.engine.connect(desk.now, mode);
    desk
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
    let mut desk = connecting(Mode::Auto);
    assert!(desk.written()[0].contains("server/discover"));
    desk.hear(&discover_result(r#""2026-07-28","2025-11-25""#));
    assert!(matches!(desk.events().as_slice(), [Event::Connected(_)]));
    assert_eq!(desk.engine.version(), Some(ProtocolVersion::V2026_07_28));
    assert!(desk.written().is_empty());
}

#[test]
fn any_other_error_falls_back_to_initialize() {
    for code in [-32601, -32602, -32600, -32000, 0] {
        let mut desk = connecting(Mode::Auto);
        desk.written();
        desk.hear(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"error":{{"code":{code},"message":"?"}}}}"#
        ));
        let frames = desk.written();
        assert!(frames.len() == 1 && frames[0].contains("\"initialize\""));
        desk.hear(&initialize_result("2", "2025-06-18"));
        assert!(matches!(desk.events().as_slice(), [Event::Connected(_)]));
        assert_eq!(desk.engine.version(), Some(ProtocolVersion::V2025_06_18));
        assert_eq!(desk.written(), [INITIALIZED]);
    }
}

#[test]
fn five_seconds_of_silence_fall_back_to_initialize() {
    let mut desk = connecting(Mode::Auto);
    desk.written();
    desk.pass(Duration::from_secs(5));
    let frames = desk.written();
    assert!(
        frames.len() == 1 && frames[0].contains("\"initialize\""),
        "never-initialize"
    );
}

#[test]
fn a_modern_server_that_speaks_no_version_of_ours_but_a_legacy_one_is_initialized() {
    let mut desk = connecting(Mode::Auto);
    desk.written();
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?","data":{"supported":["2031-01-01","2025-06-18"],"requested":"2026-07-28"}}}"#);
    assert!(desk.written()[0].contains("2025-06-18"));
}

/// 2026-07-28, basic/versioning: a client picks from the list that it is given, and asks again.
#[test]
fn a_server_that_names_our_revision_is_asked_again_once() {
    let refusal = |id: u32| {
        let data = r#"{"supported":["2026-07-28"],"requested":"?"}"#;
        format!(
            r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32022,"message":"?","data":{data}}}}}"#
        )
    };
    for mode in [Mode::Auto, Mode::Modern] {
        let mut desk = connecting(mode);
        desk.written();
        desk.hear(&refusal(1));
        assert!(desk.written()[0].contains("server/discover"));
        let result =
            r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"capabilities":{}}"#;
        desk.hear(&format!(r#"{{"jsonrpc":"2.0","id":2,"result":{result}}}"#));
        assert_eq!(desk.engine.version(), Some(ProtocolVersion::V2026_07_28));

        let mut desk = connecting(mode);
        desk.written();
        desk.hear(&refusal(1));
        desk.written();
        desk.hear(&refusal(2));
        assert!(desk.written().is_empty());
        assert!(matches!(
            desk.engine.poll_event(),
            Some(Event::ConnectFailed(Outcome::Refused(_)))
        ));
    }
}

#[test]
fn a_modern_server_with_no_version_in_common_is_a_clear_failure() {
    for mode in [Mode::Auto, Mode::Modern] {
        let mut desk = connecting(mode);
        desk.written();
        desk.hear(r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"?","data":{"supported":["2031-01-01"],"requested":"2026-07-28"}}}"#);
        assert!(matches!(
            desk.events().as_slice(),
            [Event::ConnectFailed(Outcome::Refused(_))]
        ));
        assert!(desk.written().is_empty());
    }
}

#[test]
fn modern_only_does_not_fall_back() {
    let mut desk = connecting(Mode::Modern);
    desk.written();
    desk.hear(&error_for("1"));
    assert!(matches!(
        desk.events().as_slice(),
        [Event::ConnectFailed(Outcome::Refused(_))]
    ));
}

#[test]
fn a_server_that_dies_on_the_probe_is_lost() {
    let mut desk = connecting(Mode::Auto);
    desk.written();
    desk.engine.handle_input_ended(desk.now, LINK);
    assert!(matches!(
        desk.events()[0],
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
        let mut desk = Desk::new(client_config(Wire::Http));
        desk.engine.connect(desk.now, Mode::Auto);
        let exchange = desk.opened();
        desk.written_on(exchange);
        let cause = LossKind::HttpStatus(status).into();
        desk.engine
            .handle_exchange_lost(desk.now, exchange, cause, false);
        let failed = desk
            .events()
            .iter()
            .any(|event| matches!(event, Event::ConnectFailed(_)));
        assert_eq!(!failed, falls_back, "{status}");
    }
}

#[test]
fn a_probe_that_times_out_on_http_says_nothing_about_eras() {
    let mut desk = Desk::new(client_config(Wire::Http));
    desk.engine.connect(desk.now, Mode::Auto);
    let exchange = desk.opened();
    desk.written_on(exchange);
    desk.pass(Duration::from_secs(5));
    assert!(matches!(
        desk.events().as_slice(),
        [Event::ConnectFailed(Outcome::TimedOut { .. })]
    ));
}

#[test]
fn a_version_that_was_not_offered_is_a_violation() {
    let mut desk = connecting(Mode::Legacy);
    desk.written();
    desk.hear(&initialize_result("1", "1999-01-01"));
    assert!(matches!(
        desk.events().as_slice(),
        [Event::ConnectFailed(Outcome::Violated(Violation::VersionNotOffered(version)))]
            if version == "1999-01-01"
    ));
}

#[test]
fn an_introduction_that_lacks_something_is_a_violation_that_names_it() {
    let mut desk = connecting(Mode::Legacy);
    desk.written();
    desk.hear(
        r#"{"jsonrpc":"2.0","id":1,"result":{"protocolVersion":"2025-11-25","capabilities":{}}}"#,
    );
    let events = desk.events();
    let [Event::ConnectFailed(Outcome::Violated(violation))] = events.as_slice() else {
        panic!("{events:?}")
    };
    assert!(violation.to_string().contains("serverInfo"), "{violation}");
}

#[test]
fn initialize_is_never_cancelled_on_the_wire() {
    let mut desk = connecting(Mode::Legacy);
    desk.written();
    desk.engine.shutdown(desk.now, Shutdown::Now);
    assert!(desk.written().is_empty(), "never-initialize");
    assert!(matches!(
        desk.events()[0],
        Event::ConnectFailed(Outcome::Cancelled { .. })
    ));
}

#[test]
fn no_call_begins_before_the_conversation_is_open() {
    let mut desk = connecting(Mode::Auto);
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let outcome = desk.engine.request(desk.now, ask).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Rejected(Rejection::NotConnected)
    ));
    let calls = &desk.engine.ledger().calls;
    assert_eq!((calls.started(), calls.ended_as(End::Rejected)), (2, 1));
}

#[test]
fn connecting_twice_connects_once() {
    let mut desk = connecting(Mode::Auto);
    desk.engine.connect(desk.now, Mode::Auto);
    assert_eq!(desk.written().len(), 1);
}

// ── the server ──

fn fresh_server() -> Desk {
    Desk::new(server_config(Wire::Pipe))
}

fn initialize(version: &str) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{{"protocolVersion":"{version}","capabilities":{{}},"clientInfo":{{"name":"c","version":"1"}}}}}}"#
    )
}

#[test]
fn a_server_answers_with_the_version_it_was_asked_for() {
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let mut desk = fresh_server();
        desk.hear(&initialize(version));
        assert!(desk.written()[0].contains(version));
        assert_eq!(desk.engine.version().unwrap().as_str(), version);
        desk.start("2");
    }
}

#[test]
fn a_server_answers_an_unknown_version_with_its_latest_legacy_one() {
    for version in ["1999-01-01", "2026-07-28", "2099-01-01"] {
        let mut desk = fresh_server();
        desk.hear(&initialize(version));
        assert!(desk.written()[0].contains("2025-11-25"));
    }
}

#[test]
fn initialize_twice_is_refused() {
    let mut desk = fresh_server();
    desk.hear(&initialize("2025-11-25"));
    desk.hear(&initialize("2025-11-25").replace("\"id\":1", "\"id\":2"));
    assert!(desk.written()[1].contains("sent twice"));
}

/// It would open the legacy era for a peer that speaks the modern one.
#[test]
fn a_modern_initialize_is_an_unknown_method() {
    let mut desk = fresh_server();
    let modern = initialize("2025-11-25").replace(
        "\"capabilities\"",
        r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}},"capabilities""#,
    );
    desk.hear(&modern);
    let refusal = &desk.written()[0];
    assert!(refusal.contains("-32601"), "{refusal}");
    assert_eq!(desk.engine.version(), None);
}

#[test]
fn a_modern_only_server_names_its_versions_when_it_is_initialized() {
    let mut config = server_config(Wire::Pipe);
    config.versions = vec![ProtocolVersion::V2026_07_28];
    let mut desk = Desk::new(config);
    desk.hear(&initialize("2025-11-25"));
    let frame = desk.written().remove(0);
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
    let mut desk = Desk::new(config);
    desk.hear(&modern_tool_call("1").replace("tools/call", "server/discover"));
    let value: serde_json::Value = serde_json::from_str(&desk.written()[0]).unwrap();
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
    let mut desk = fresh_server();
    desk.hear(&tool_call("1"));
    let frame = desk.written().remove(0);
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
    let mut desk = fresh_server();
    desk.hear(r#"{"jsonrpc":"2.0","id":1,"method":"ping"}"#);
    assert!(desk.written()[0].contains("\"result\":{}"));
}

#[test]
fn a_modern_request_in_a_version_we_do_not_speak_is_refused_with_the_list() {
    let mut desk = fresh_server();
    for version in ["2031-01-01", "2025-11-25"] {
        desk.hear(&modern_tool_call("1").replace("2026-07-28", version));
        let frame = desk.written().remove(0);
        assert!(
            frame.contains("-32022") && frame.contains(version),
            "{frame}"
        );
    }
}

#[test]
fn a_modern_request_without_capabilities_is_malformed() {
    let mut desk = fresh_server();
    desk.hear(&modern_tool_call("1").replace("clientCapabilities", "clientNothing"));
    let frame = desk.written().remove(0);
    assert!(
        frame.contains("-32602") && frame.contains("clientCapabilities"),
        "{frame}"
    );
}

#[test]
fn a_modern_request_needs_no_initialize_and_does_not_open_the_legacy_era() {
    let mut desk = fresh_server();
    desk.hear(&modern_tool_call("1"));
    desk.started();
    desk.hear(&tool_call("2"));
    assert!(desk.written()[0].contains("-32602"));
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
        let mut desk = Desk::server(Era::Legacy, Wire::Pipe);
        desk.hear(&format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{meta}}}"#
        ));
        let frame = desk.written().remove(0);
        assert!(frame.contains("-32602") && frame.contains(named), "{frame}");
    }
}

#[test]
fn on_http_no_call_overtakes_the_last_word_of_the_handshake() {
    let mut desk = Desk::new(client_config(Wire::Http));
    desk.engine.connect(desk.now, Mode::Legacy);
    let exchange = desk.opened();
    desk.written_on(exchange);
    desk.hear_on(exchange, &initialize_result("1", "2025-11-25"));
    assert!(desk.events().is_empty());
    let ask = Ask::new("tools/list", RawJson::empty_object());
    let outcome = desk.engine.request(desk.now, ask).unwrap_err();
    assert!(matches!(
        outcome,
        Outcome::Rejected(Rejection::NotConnected)
    ));
    let lane = desk
        .transmits()
        .into_iter()
        .find_map(|transmit| match transmit {
            Transmit::Write(lane) => Some(lane),
            Transmit::Close { .. } => None,
        });
    assert_eq!(desk.written_on(lane.unwrap()), [INITIALIZED]);
    assert!(matches!(desk.events().as_slice(), [Event::Connected(_)]));
}

#[test]
fn initialize_cannot_be_asked_like_a_call() {
    let mut desk = Desk::client(Era::Legacy, Wire::Pipe);
    let ask = Ask::new("initialize", RawJson::empty_object());
    let outcome = desk.engine.request(desk.now, ask).unwrap_err();
    assert!(matches!(outcome, Outcome::Rejected(Rejection::NotAllowed)));
}
