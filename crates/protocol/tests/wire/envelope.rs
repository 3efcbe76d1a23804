//! The envelope: what is accepted, and one precise fault for each thing that is not.

use belay_protocol::jsonrpc::{
    self, DecodeError, DecodeFault as Fault, Kind, Message, RequestId, decode, decode_batch,
};
use bytes::Bytes;

fn decoded(json: &str) -> Result<Message, DecodeError> {
    decode(&Bytes::copy_from_slice(json.as_bytes()), 64)
}

fn fault(json: &str) -> Fault {
    match decoded(json) {
        Ok(message) => panic!("{json} is {message:?}"),
        Err(error) => error.fault,
    }
}

#[test]
fn each_kind_of_message_is_known() {
    let request = decoded(r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a":[1]}}"#);
    let Ok(Message::Request(request)) = request else {
        panic!("{request:?}")
    };
    assert_eq!(request.id, RequestId::from(1));
    assert_eq!(&*request.method, "m");
    assert_eq!(request.params.unwrap().as_str(), r#"{"a":[1]}"#);

    let notification = decoded(r#"{"method":"n","jsonrpc":"2.0"}"#);
    assert!(matches!(notification, Ok(Message::Notification(n)) if &*n.method == "n"));

    let answer = decoded(r#"{"result":{},"id":"x","jsonrpc":"2.0"}"#);
    assert!(
        matches!(answer, Ok(Message::Response(r)) if r.id == RequestId::from("x") && r.body.is_ok())
    );

    let refusal = decoded(
        r#"{"jsonrpc":"2.0","id":-3,"error":{"code":-1,"message":"no","data":{"x":1},"more":0}}"#,
    );
    let Ok(Message::Response(refusal)) = refusal else {
        panic!("{refusal:?}")
    };
    let error = refusal.body.unwrap_err();
    assert_eq!((error.code, &*error.message), (-1, "no"));
    assert_eq!(error.data.unwrap().as_str(), r#"{"x":1}"#);

    for id in ["", r#""id":null,"#] {
        let json = format!(r#"{{"jsonrpc":"2.0",{id}"error":{{"code":1,"message":"?"}}}}"#);
        assert!(
            matches!(decoded(&json), Ok(Message::Unaddressed(_))),
            "{json}"
        );
    }
}

#[test]
fn every_bad_message_has_its_own_fault() {
    let syntax = |at, expected| Fault::Syntax { at, expected };
    #[rustfmt::skip]
    let cases = [
        ("", syntax(0, "a value")),
        ("   ", syntax(3, "a value")),
        ("{", syntax(1, "a key in quotes")),
        ("{}", Fault::VersionMissing),
        ("nul", syntax(0, "a value")),
        ("null", Fault::NotAnObject),
        ("7", Fault::NotAnObject),
        ("\"text\"", Fault::NotAnObject),
        ("[]", Fault::BatchNotAllowed),
        ("[{}]", Fault::BatchNotAllowed),
        (r#"{"jsonrpc":"2.0"}"#, Fault::NoKind),
        (r#"{"jsonrpc":"2.0","id":1}"#, Fault::NoKind),
        (r#"{"id":1,"method":"m"}"#, Fault::VersionMissing),
        (r#"{"jsonrpc":"1.0","id":1,"method":"m"}"#, Fault::VersionWrong),
        (r#"{"jsonrpc":2.0,"id":1,"method":"m"}"#, Fault::VersionWrong),
        (r#"{"JsonRpc":"2.0","id":1,"method":"m"}"#, Fault::VersionMissing),
        (r#"{"jsonrpc":"2.0","id":1,"Method":"m"}"#, Fault::NoKind),
        (r#"{"jsonrpc":"2.0","id":null,"method":"m"}"#, Fault::IdNull),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#, Fault::IdFraction),
        (r#"{"jsonrpc":"2.0","id":1.0,"method":"m"}"#, Fault::IdFraction),
        (r#"{"jsonrpc":"2.0","id":1e3,"method":"m"}"#, Fault::IdFraction),
        (r#"{"jsonrpc":"2.0","id":9223372036854775808,"method":"m"}"#, Fault::IdOutOfRange),
        (r#"{"jsonrpc":"2.0","id":-9223372036854775809,"method":"m"}"#, Fault::IdOutOfRange),
        (r#"{"jsonrpc":"2.0","id":true,"method":"m"}"#, Fault::IdWrongType),
        (r#"{"jsonrpc":"2.0","id":[1],"method":"m"}"#, Fault::IdWrongType),
        (r#"{"jsonrpc":"2.0","id":{},"method":"m"}"#, Fault::IdWrongType),
        (r#"{"jsonrpc":"2.0","result":{}}"#, Fault::IdMissing),
        (r#"{"jsonrpc":"2.0","id":null,"result":{}}"#, Fault::IdNull),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, Fault::MethodNotString),
        (r#"{"jsonrpc":"2.0","id":1,"method":null}"#, Fault::MethodNotString),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":[]}"#, Fault::ParamsNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":null}"#, Fault::ParamsNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","params":7}"#, Fault::ParamsNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m","result":{}}"#, Fault::SeveralKinds),
        (r#"{"jsonrpc":"2.0","id":1,"result":{},"error":{}}"#, Fault::SeveralKinds),
        (r#"{"jsonrpc":"2.0","id":1,"error":"no"}"#, Fault::ErrorNotObject),
        (r#"{"jsonrpc":"2.0","id":1,"error":{}}"#, Fault::ErrorCodeMissing),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"message":"no"}}"#, Fault::ErrorCodeMissing),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1}}"#, Fault::ErrorMessageMissing),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":"1","message":""}}"#, Fault::ErrorCodeNotInteger),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1.5,"message":""}}"#, Fault::ErrorCodeNotInteger),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":2}}"#, Fault::ErrorMessageNotString),
        (r#"{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"m"}"#, Fault::DuplicateKey("jsonrpc".into())),
        (r#"{"jsonrpc":"2.0","id":1,"id":1,"method":"m"}"#, Fault::DuplicateKey("id".into())),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","method":"b"}"#, Fault::DuplicateKey("method".into())),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","m\u0065thod":"b"}"#, Fault::DuplicateKey("method".into())),
        (r#"{"jsonrpc":"2.0","id":1,"method":"a","x":1,"x":2}"#, Fault::DuplicateKey("x".into())),
        (r#"{"jsonrpc":"2.0","id":1,"error":{"code":1,"code":2,"message":""}}"#, Fault::DuplicateKey("code".into())),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"} x"#, syntax(38, "the end of the message")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m"}{}"#, syntax(37, "the end of the message")),
        (r#"{"jsonrpc":"2.0","id":1,"method":"m""#, syntax(36, "`,` or `}`")),
        (r#"{"jsonrpc":"2.0" "id":1}"#, syntax(17, "`,` or `}`")),
        (r#"{"jsonrpc" "2.0"}"#, syntax(11, "`:`")),
        (r#"{"a":1,}"#, syntax(7, "a key in quotes")),
        (r#"{"a":[1,]}"#, syntax(8, "a value")),
        (r#"{"a":[1 2]}"#, syntax(8, "`,` or `]`")),
        (r#"{"a":{"b" 1}}"#, syntax(10, "`:`")),
        (r#"{'a':1}"#, syntax(1, "a key in quotes")),
        (r#"{"a":01}"#, syntax(6, "no digit after a leading zero")),
        (r#"{"a":-}"#, syntax(6, "a digit")),
        (r#"{"a":1.}"#, syntax(7, "a digit")),
        (r#"{"a":1e}"#, syntax(7, "a digit")),
        (r#"{"a":+1}"#, syntax(5, "a value")),
        (r#"{"a":NaN}"#, syntax(5, "a value")),
        (r#"{"a":tru}"#, syntax(5, "a value")),
        (r#"{"a":"x}"#, syntax(8, "the end of a string")),
        ("{\"a\":\"\t\"}", syntax(6, "no control character in a string")),
        ("{\"a\":\"\0\"}", syntax(6, "no control character in a string")),
        (r#"{"a":"\x"}"#, syntax(6, "an escape that JSON knows")),
        (r#"{"a":"\u12"}"#, syntax(6, "`\\u` and four hexadecimal digits")),
        (r#"{"a":"\ud800"}"#, syntax(12, "the second half of a surrogate pair")),
        (r#"{"a":"\ud800\u0041"}"#, syntax(18, "the second half of a surrogate pair")),
        (r#"{"a":"\udc00"}"#, syntax(12, "the first half of a surrogate pair")),
    ];
    for (json, expected) in cases {
        assert_eq!(fault(json), expected, "{json}");
    }
}

#[test]
fn what_is_not_text_is_refused_where_it_stops_being_text() {
    for (bytes, at) in [
        (&b"\xFF"[..], 0),
        (
            b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xC3\x28\"}",
            34,
        ),
        (b"{\"a\":\"\xED\xA0\x80\"}", 6),
    ] {
        let error = decode(&Bytes::from_static(bytes), 64).unwrap_err();
        assert_eq!(error.fault, Fault::NotUtf8 { at });
    }
}

#[test]
fn ids_stay_as_they_came() {
    for id in [
        "0",
        "-1",
        "9223372036854775807",
        "-9223372036854775808",
        r#""""#,
        r#""7""#,
        r#""\"é\"""#,
    ] {
        let json = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"m"}}"#);
        let message = decoded(&json).unwrap();
        assert_eq!(message.encode(), json.as_bytes(), "{id}");
    }
}

#[test]
fn the_id_is_told_where_it_could_be_read() {
    for (json, id, is_response) in [
        (r#"{"jsonrpc":"2.0","id":4,"method":7}"#, Some(4), false),
        (
            r#"{"jsonrpc":"2.0","id":4,"method":"m","params":[}"#,
            Some(4),
            false,
        ),
        (
            r#"{"method":"m","params":[],"id":4,"jsonrpc":"2.0"}"#,
            Some(4),
            false,
        ),
        (
            r#"{"jsonrpc":"2.0","id":4,"result":{},"error":{}}"#,
            Some(4),
            true,
        ),
        (r#"{"jsonrpc":"3.0","id":4,"result":{}}"#, Some(4), true),
        (r#"{"jsonrpc":"2.0","method":7,"id":4.5}"#, None, false),
        (r#"{"jsonrpc":"2.0","method":"m"#, None, false),
    ] {
        let error = decoded(json).unwrap_err();
        assert_eq!(error.id, id.map(RequestId::from), "{json}");
        assert_eq!(error.looks_like == Kind::Response, is_response, "{json}");
    }
}

#[test]
fn faults_have_the_codes_of_json_rpc() {
    for (json, code) in [("{", -32700), ("[]", -32600), ("7", -32600), ("{}", -32600)] {
        assert_eq!(
            decoded(json).unwrap_err().to_error_object().code,
            code,
            "{json}"
        );
    }
    let error = decoded(r#"{"jsonrpc":"2.0","id":1.5,"method":"m"}"#).unwrap_err();
    assert_eq!(error.to_string(), "`id` must not be a fraction");
}

#[test]
fn depth_is_checked_before_anything_is_passed_on() {
    let nested = |depth: usize| {
        let (open, close) = ("[".repeat(depth - 2), "]".repeat(depth - 2));
        format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{{"a":{open}{close}}}}}"#)
    };
    assert!(decoded(&nested(64)).is_ok());
    assert_eq!(fault(&nested(65)), Fault::TooDeep { limit: 64 });
    let bomb = Bytes::from("[".repeat(1_000_000));
    assert_eq!(decode(&bomb, 64).unwrap_err().fault, Fault::BatchNotAllowed);
    let bomb = nested(1_000_000);
    assert_eq!(fault(&bomb), Fault::TooDeep { limit: 64 });
    // A limit beyond the largest is the largest.
    let error = decode(&bomb.into(), usize::MAX).unwrap_err();
    assert_eq!(
        error.fault,
        Fault::TooDeep {
            limit: jsonrpc::MAX_DEPTH
        }
    );
}

#[test]
fn objects_and_arrays_nest_in_any_order() {
    let nest = r#"{"a":[{"b":[[],{}]},[[{"c":{"d":[1,{"e":null}]}}]]]}"#;
    let json = format!(r#"{{"jsonrpc":"2.0","id":1,"method":"m","params":{nest}}}"#);
    assert_eq!(decoded(&json).unwrap().encode(), json.as_bytes());
}

#[test]
fn a_method_may_be_written_with_escapes() {
    let message = decoded(r#"{"jsonrpc":"2.0","id":1,"method":"tools\/c\u0061ll"}"#).unwrap();
    assert!(matches!(message, Message::Request(request) if &*request.method == "tools/call"));
}

#[test]
fn what_is_encoded_never_contains_a_newline() {
    let json =
        "{\"jsonrpc\":\"2.0\",\n\"id\":1,\r\n\"method\":\"m\",\"params\":\n{\n\"a\":\r[1,\n2]\n}}";
    let encoded = decoded(json).unwrap().encode();
    assert!(!encoded.iter().any(|byte| matches!(byte, b'\n' | b'\r')));
    assert!(decode(&encoded, 64).is_ok());
    let told = Message::Unaddressed(jsonrpc::ErrorObject::new(1, "two\nlines"));
    assert!(!told.encode().contains(&b'\n'));
}

#[test]
fn a_batch_is_split_into_messages_that_each_live_by_themselves() {
    let batch =
        r#" [{"jsonrpc":"2.0","id":1,"method":"a"}, {"id":2}, 7, {"jsonrpc":"2.0","method":"b"}] "#;
    let messages = decode_batch(&batch.into(), 64, 100).unwrap();
    assert_eq!(messages.len(), 4);
    assert!(matches!(&messages[0], Ok(Message::Request(_))));
    assert!(matches!(&messages[1], Err(error) if error.id == Some(RequestId::from(2))));
    assert!(matches!(&messages[2], Err(error) if error.fault == Fault::NotAnObject));
    assert!(matches!(&messages[3], Ok(Message::Notification(_))));
}

#[test]
fn a_batch_can_be_wrong_as_a_whole() {
    for (batch, expected) in [
        ("[]", Fault::EmptyBatch),
        (
            "[{}",
            Fault::Syntax {
                at: 3,
                expected: "`,` or `]`",
            },
        ),
        (
            "[{}] x",
            Fault::Syntax {
                at: 5,
                expected: "the end of the message",
            },
        ),
    ] {
        assert_eq!(
            decode_batch(&batch.into(), 64, 100).unwrap_err().fault,
            expected,
            "{batch}"
        );
    }
    let single = r#"{"jsonrpc":"2.0","method":"a"}"#;
    assert_eq!(decode_batch(&single.into(), 64, 100).unwrap().len(), 1);
    let many = format!("[{}1]", "1,".repeat(100));
    let fault = decode_batch(&many.clone().into(), 64, 100)
        .unwrap_err()
        .fault;
    assert_eq!(fault, Fault::BatchTooLong { limit: 100 });
    assert_eq!(decode_batch(&many.into(), 64, 101).unwrap().len(), 101);
    let nested = decode_batch(&"[[]]".into(), 64, 100).unwrap();
    assert!(matches!(&nested[0], Err(error) if error.fault == Fault::BatchNotAllowed));
}

#[test]
fn a_message_of_many_unknown_fields_is_refused_quickly() {
    let fields: Vec<String> = (0..200_000).map(|at| format!(r#""f{at}":0"#)).collect();
    let json = format!(r#"{{"jsonrpc":"2.0","id":4,{}}}"#, fields.join(","));
    let error = decoded(&json).unwrap_err();
    assert_eq!(error.fault, Fault::TooManyFields { limit: 16 });
    assert_eq!(error.id, Some(RequestId::from(4)));
}

#[test]
fn what_a_broken_message_was_meant_to_be_is_told() {
    for (json, kind) in [
        (
            r#"{"jsonrpc":"2.0","id":1,"result":{"a":}}"#,
            Kind::Response,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"error":{"code":01}}"#,
            Kind::Response,
        ),
        (
            r#"{"jsonrpc":"2.0","id":1,"method":"m","params":{"a"}}"#,
            Kind::Request,
        ),
        (
            r#"{"jsonrpc":"2.0","method":"m","params":{"a"}}"#,
            Kind::Notification,
        ),
        (r#"{"jsonrpc":"2.0","method":tru}"#, Kind::Notification),
        (r#"{"jsonrpc":"2.0","id":1}"#, Kind::Unknown),
        ("{", Kind::Unknown),
    ] {
        assert_eq!(decoded(json).unwrap_err().looks_like, kind, "{json}");
    }
}
