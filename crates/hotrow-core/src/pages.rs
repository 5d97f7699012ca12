//! Addresses of the documentation's pages, for messages and helps: a user who installed the program has no `docs` folder.

/// The address of a page of this version's documentation, as a literal: `page!("queues.md")`, or `page!("mysql/README.md#packing")`.
#[macro_export]
macro_rules! page {
    ($page:literal) => {
        concat!("https://github.com/hotrow/hotrow/blob/v", env!("CARGO_PKG_VERSION"), "/docs/", $page)
    };
}
