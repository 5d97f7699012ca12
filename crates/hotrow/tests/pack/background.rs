//! The gateway's maintenance of the hotrow schema, in the background: a post that is fanned out in chunks arrives although
//! no client fans it out.

use hotrow_testkit::Gateway;
use hotrow_testkit::line::until;

use crate::private;

#[test]
#[ignore = "long: make test-all"]
fn a_gateway_fans_out_pending_posts() {
    let (server, mut line) = private("maintenance");
    line.query("update hotrow.setting set feed_inline = 0");
    for call in ["follow(1, 9)", "follow(2, 9)", "post(9, 'hello')"] {
        assert_eq!(line.query(&format!("select hotrow.{call}")).error(), None);
    }
    assert_eq!(line.query("select content from hotrow.consume(1)").rows().len(), 0);
    let _gateway = Gateway::in_front_of(&server.url(), &[]);
    until("the post is delivered", || line.query("select 1 from hotrow.fan_out").rows().is_empty());
    for user in [1, 2] {
        let rows = line.query(&format!("select content from hotrow.consume({user})")).rows();
        assert_eq!(rows, [[Some("hello".to_owned())]]);
    }
}

#[test]
#[ignore = "long: make test-all"]
fn the_metrics_show_dead_letters_and_the_age_of_the_oldest_order() {
    let (server, mut line) = private("dead_letters");
    for sql in [
        "select hotrow.create_queue('jobs', max_attempts => 1)",
        "select hotrow.enqueue('jobs', gen_random_uuid())",
        "select hotrow.fail('jobs', receipt) from hotrow.take('jobs', 1)",
        "select hotrow.enqueue('jobs', gen_random_uuid())",
        "select pg_sleep(1)", // the age of the oldest order
    ] {
        assert_eq!(line.query(sql).error(), None, "{sql}");
    }
    let gateway = Gateway::in_front_of(&server.url(), &[]);
    assert!(!gateway.metrics().contains("hotrow_dead_letters "), "nothing is known before the first round");
    until("the gateway has made a round", || gateway.metrics().contains("hotrow_dead_letters 1\n"));
    assert!(gateway.metric("oldest_order_seconds") >= 1);
    assert_eq!(gateway.metric("maintenance_failures_total"), 0);
}
