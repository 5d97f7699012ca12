//! The files of the operations page: where they are, and what they cannot do. `conformance/page` tests the page in a browser.

use std::collections::BTreeMap;

use crate::Api;
use crate::client::{self, Reply};

/// The page and every file that it or one of its files names.
async fn files(api: &Api) -> BTreeMap<String, Reply> {
    let (mut files, mut wanted) = (BTreeMap::new(), vec!["/".to_owned()]);
    while let Some(path) = wanted.pop() {
        if files.contains_key(&path) {
            continue;
        }
        let reply = client::json(api.port, "GET", &path, "").await;
        assert_eq!(reply.status, 200, "{path}");
        let named = reply.text.split('"').filter(|text| text.starts_with("/page/"));
        wanted.extend(named.map(str::to_owned));
        files.insert(path, reply);
    }
    files
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_loads_only_its_own_files() {
    let api = Api::start(&[]).await;
    let files = files(&api).await;
    assert!(files.len() > 20 && files.contains_key("/page/queues.js"), "{:?}", files.keys());
    for (path, reply) in &files {
        let media_type = match path.rsplit('.').next() {
            Some("js") => "text/javascript; charset=utf-8",
            Some("css") => "text/css; charset=utf-8",
            Some("svg") => "image/svg+xml",
            _ => "text/html; charset=utf-8",
        };
        assert_eq!(reply.header("content-type"), media_type, "{path}");
        let policy = reply.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; script-src 'self';"), "{policy}");
        assert!(!policy.contains("unsafe"), "{policy}");
        let text = reply.text.replace("http://www.w3.org/2000/svg", "the name of SVG");
        assert!(!text.contains("://"), "{path} names another site");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_page_inserts_texts_as_text_and_stores_only_its_colours() {
    let api = Api::start(&[]).await;
    for (path, Reply { text, .. }) in files(&api).await {
        for word in ["innerHTML", "outerHTML", "insertAdjacent", "document.write", "eval(", "cookie"] {
            assert!(!text.contains(word), "{path} has {word}");
        }
        let stored = text.lines().filter(|line| line.contains("Storage"));
        assert!(stored.clone().all(|line| line.contains("hotrow-theme")), "{path} stores more");
        let sends = text.contains("fetch(\"") || text.contains("await fetch(");
        assert!(!sends || ["/page/api.js", "/page/live.js"].contains(&&*path), "{path} sends requests");
        // `exact.js` gives the reason. Its tests are in `examples`, where Node is installed.
        let is_exact = ["/page/exact.js", "/page/live.js"].contains(&&*path) || !text.contains("JSON.parse");
        assert!(is_exact && !text.contains(".json()"), "{path} reads numbers that JavaScript rounds");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_former_address_of_the_queues_leads_to_them() {
    let api = Api::start(&[]).await;
    let reply = client::json(api.port, "GET", "/queues", "").await;
    assert_eq!((reply.status, reply.header("location")), (308, "/#queues"));
}
