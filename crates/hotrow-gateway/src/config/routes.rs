//! `[[server]]` and `[[database]]` tables of the settings file: which server has a database that clients connect to, and
//! the database's and the user's name there.

use std::collections::BTreeMap;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use hotrow_auth::Password;
use hotrow_connect::config::{UpstreamConfig, UpstreamError};
use hotrow_core::limits;
use serde::Deserialize;
use zeroize::Zeroizing;

/// The name of a `[[database]]` table for all databases that no other table names.
pub const ANY: &str = "*";

/// The name of the only server if there are no tables.
const SINGLE: &str = "upstream";

#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerTable {
    /// Its name in the settings.
    pub name: String,
    /// Its URL or keyword string, like `upstream`.
    pub url: Hidden,
    /// Its standbys for reads, like `replicas`.
    #[serde(default)]
    pub replicas: Option<Hidden>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct DatabaseTable {
    /// The name that clients connect to, or [`ANY`].
    pub name: String,
    /// The name of its server.
    pub server: Option<String>,
    /// The database's name at the server; none means the same name.
    pub database: Option<String>,
    /// The user of all its connections to the server; none means the client's user.
    pub user: Option<String>,
    /// The password of that user.
    pub password: Option<Hidden>,
}

/// A text that has or may have a password. It is not printed.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(from = "String")]
pub struct Hidden(Zeroizing<String>);

impl From<String> for Hidden {
    fn from(text: String) -> Self {
        Hidden(Zeroizing::new(text))
    }
}

impl Hidden {
    pub fn text(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Hidden {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(secret)")
    }
}

/// Why the tables cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum RouteError {
    /// A server's URL is wrong.
    #[error("[[server]] {name:?}: {error}")]
    Server {
        /// The server.
        name: String,
        /// The reason.
        error: UpstreamError,
    },
    /// A table has no name, or one that no client can send.
    #[error(
        "a {table} table has no name, or one of more than {} bytes: give it a name =",
        limits::IDENTIFIER_BYTES_MAX
    )]
    Name {
        /// The kind of table.
        table: &'static str,
    },
    /// Two tables have one name.
    #[error("two {table} tables have the name {name:?}: rename or remove one of them")]
    Twice {
        /// The kind of table.
        table: &'static str,
        name: String,
    },
    /// The URL of a server's replicas is wrong.
    #[error("replicas of [[server]] {name:?}: {error}")]
    Replicas {
        /// The server.
        name: String,
        /// The reason.
        error: UpstreamError,
    },
    /// A database names no server.
    #[error("[[database]] {0:?} names no server: add server = and the name of a [[server]] table")]
    NoServer(String),
    /// A database names a server that does not exist.
    #[error(
        "[[database]] {name:?} names the server {server:?}, and there is no such [[server]] table; there are: {known}"
    )]
    UnknownServer {
        /// The database.
        name: String,
        server: String,
        /// The names of all servers.
        known: String,
    },
    /// A password without its user.
    #[error("[[database]] {0:?} has a password without a user: add user =, or remove the password")]
    PasswordOnly(String),
    /// The console's name.
    #[error(
        "[[database]] {0:?} has the name of the gateway's console: give it another name, and name it there with database ="
    )]
    Console(String),
    /// No client could connect.
    #[error(
        "there are [[server]] tables and no [[database]] table: add one with name = \"*\" and server = for all databases of a server"
    )]
    NoDatabase,
    /// Too many tables.
    #[error(
        "there are more than {} [[database]] tables: use name = \"*\" for databases with the same name at the server",
        limits::DATABASES_MAX
    )]
    TooMany,
}

/// A server behind the gateway.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its number, which stays the same as long as its definition does.
    pub id: u64,
    /// Its name in the settings.
    pub name: String,
    /// The definition.
    url: Hidden,
    replicas_url: Option<Hidden>,
    /// Its hosts, and the user and the database of the gateway's own commands.
    pub upstream: UpstreamConfig,
    /// Its replicas, with one host each.
    pub replicas: Vec<UpstreamConfig>,
}

/// Where the clients of a database get to: resolved once, when a client connects. Two routes are equal if nothing of
/// their definition differs.
#[derive(Clone, Debug)]
pub struct Route {
    id: u64,
    pub server: Arc<Server>,
    table: DatabaseTable,
}

impl PartialEq for Route {
    fn eq(&self, other: &Self) -> bool {
        self.id == other.id
    }
}

impl Eq for Route {}

impl Hash for Route {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.id.hash(state);
    }
}

impl Route {
    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// The name of a client's database at the server.
    pub fn database<'a>(&'a self, asked: &'a str) -> &'a str {
        self.table.database.as_deref().unwrap_or(asked)
    }

    /// The user that all clients have at the server, if the table sets one.
    pub fn forced_user(&self) -> Option<&str> {
        self.table.user.as_deref()
    }

    /// The password of the table's user.
    pub fn password(&self) -> Option<Password> {
        let server = &self.server.upstream;
        let own = server.password.clone().filter(|_| self.forced_user() == Some(&server.user));
        let given = self.table.password.as_ref().map(|text| Password::new(text.text().as_bytes().to_vec()));
        given.or(own)
    }
}

/// All servers and databases.
#[derive(Clone, Debug)]
pub struct Routes {
    servers: Vec<Arc<Server>>,
    by_name: BTreeMap<String, Arc<Route>>,
    any: Option<Arc<Route>>,
    /// The first table's.
    first: Arc<Route>,
    /// There are no tables: `upstream` has all databases.
    is_single: bool,
}

static IDS: AtomicU64 = AtomicU64::new(1);

fn next_id() -> u64 {
    IDS.fetch_add(1, Relaxed)
}

impl Routes {
    /// All databases of one server with these replicas.
    pub fn single(upstream: UpstreamConfig, replicas: Vec<UpstreamConfig>) -> Self {
        let (name, url) = (SINGLE.to_owned(), Hidden::from(String::new()));
        let server = Arc::new(Server { id: next_id(), name, url, replicas_url: None, upstream, replicas });
        let table = DatabaseTable { name: ANY.to_owned(), ..DatabaseTable::default() };
        let first = Arc::new(Route { id: next_id(), server: server.clone(), table });
        let any = Some(first.clone());
        Routes { servers: vec![server], by_name: BTreeMap::new(), any, first, is_single: true }
    }

    /// The databases of these tables. Reads the certificates that the servers' URLs name.
    pub fn of_tables(servers: Vec<ServerTable>, databases: Vec<DatabaseTable>) -> Result<Self, RouteError> {
        if databases.len() > limits::DATABASES_MAX {
            return Err(RouteError::TooMany);
        }
        let mut by_server = BTreeMap::new();
        for ServerTable { name, url, replicas: replicas_url } in servers {
            check_name("[[server]]", &name)?;
            let upstream = url.text().parse();
            let upstream = upstream.map_err(|error| RouteError::Server { name: name.clone(), error })?;
            let replicas =
                replicas_url.as_ref().map_or(Ok(Vec::new()), |url| UpstreamConfig::replicas(url.text()));
            let replicas = replicas.map_err(|error| RouteError::Replicas { name: name.clone(), error })?;
            let server = Server { id: next_id(), name: name.clone(), url, replicas_url, upstream, replicas };
            let server = Arc::new(server);
            if by_server.insert(name.clone(), server).is_some() {
                return Err(RouteError::Twice { table: "[[server]]", name });
            }
        }
        let (mut first, mut any, mut by_name) = (None, None, BTreeMap::new());
        for table in databases {
            let name = table.name.clone();
            let route = Arc::new(route(table, &by_server)?);
            first.get_or_insert_with(|| route.clone());
            let earlier = if name == ANY { any.replace(route) } else { by_name.insert(name.clone(), route) };
            if earlier.is_some() {
                return Err(RouteError::Twice { table: "[[database]]", name });
            }
        }
        let first = first.ok_or(RouteError::NoDatabase)?;
        let servers = by_server.into_values().collect();
        Ok(Routes { servers, by_name, any, first, is_single: false })
    }

    pub fn find(&self, database: &str) -> Option<&Arc<Route>> {
        self.by_name.get(database).or(self.any.as_ref())
    }

    /// The route of the first table. The gateway's own clients, the HTTP API and the console's logins use it.
    pub fn first(&self) -> &Arc<Route> {
        &self.first
    }

    /// The name under which clients reach the database of the first table.
    pub fn first_name(&self) -> &str {
        match &*self.first.table.name {
            ANY => &self.first.server.upstream.database,
            name => name,
        }
    }

    /// The names of the databases that have tables of their own, with their routes.
    pub fn named(&self) -> impl Iterator<Item = (&str, &Arc<Route>)> {
        self.by_name.iter().map(|(name, route)| (name.as_str(), route))
    }

    /// The databases in which the gateway does the maintenance of the hotrow schema, with the names under which clients reach
    /// them: those of the tables, and for a wildcard the one of the server's URL. No database is listed twice.
    pub fn with_maintenance(&self) -> Vec<(String, Arc<Route>)> {
        let any = self.any.iter().map(|route| (&*route.server.upstream.database, route));
        let mut found: Vec<(String, Arc<Route>)> = Vec::new();
        for (name, route) in self.named().chain(any) {
            let is_same = |(other_name, other): &(String, Arc<Route>)| {
                other.server.id == route.server.id && other.database(other_name) == route.database(name)
            };
            if !found.iter().any(is_same) {
                found.push((name.to_owned(), route.clone()));
            }
        }
        found
    }

    /// All servers.
    pub fn servers(&self) -> impl Iterator<Item = &Arc<Server>> {
        self.servers.iter()
    }

    /// Whether this server is still one of them.
    pub fn has_server(&self, id: u64) -> bool {
        self.servers.iter().any(|server| server.id == id)
    }

    /// Whether this route is still one of them.
    pub fn has(&self, route: &Route) -> bool {
        self.current(route).is_some()
    }

    /// This route as it is now: its server's certificates may have been read again.
    pub fn current(&self, route: &Route) -> Option<&Arc<Route>> {
        let named =
            if route.table.name == ANY { self.any.as_ref() } else { self.by_name.get(&route.table.name) };
        named.filter(|now| &***now == route)
    }

    /// These routes after a reload. Servers and databases with the same definition stay the same, with the certificates
    /// that were read again. `upstream` stays what it was at the start, and so does the choice between it and the tables.
    pub fn replacing(self, before: &Routes) -> Routes {
        if self.is_single != before.is_single {
            return before.clone();
        }
        let server = |new: &Arc<Server>| {
            let is_same = |old: &&Arc<Server>| {
                let same =
                    (&old.name, &old.url, &old.replicas_url) == (&new.name, &new.url, &new.replicas_url);
                before.is_single || same
            };
            let Some(old) = before.servers.iter().find(is_same) else { return new.clone() };
            let mut server = Server::clone(old);
            server.upstream.renew(&new.upstream);
            server.replicas.iter_mut().zip(&new.replicas).for_each(|(old, new)| old.renew(new));
            Arc::new(server)
        };
        let servers: Vec<Arc<Server>> = self.servers.iter().map(server).collect();
        let route = |new: &Arc<Route>| {
            let server = servers.iter().find(|server| server.name == new.server.name);
            let server = server.expect("each server of a route is in the list").clone();
            let all = before.by_name.values().chain(&before.any);
            let id = all
                .filter(|old| old.table == new.table && old.server.id == server.id)
                .map(|old| old.id)
                .next()
                .unwrap_or(new.id);
            Arc::new(Route { id, server, table: new.table.clone() })
        };
        let by_name = self.by_name.iter().map(|(name, new)| (name.clone(), route(new))).collect();
        let (any, first) = (self.any.as_ref().map(route), route(&self.first));
        Routes { servers, by_name, any, first, is_single: self.is_single }
    }
}

fn check_name(table: &'static str, name: &str) -> Result<(), RouteError> {
    match name.len() {
        1..=limits::IDENTIFIER_BYTES_MAX => Ok(()),
        _ => Err(RouteError::Name { table }),
    }
}

fn route(table: DatabaseTable, servers: &BTreeMap<String, Arc<Server>>) -> Result<Route, RouteError> {
    check_name("[[database]]", &table.name)?;
    let name = || table.name.clone();
    if table.name == crate::console::DATABASE {
        return Err(RouteError::Console(name()));
    }
    if table.password.is_some() && table.user.is_none() {
        return Err(RouteError::PasswordOnly(name()));
    }
    let wanted = table.server.clone().ok_or_else(|| RouteError::NoServer(name()))?;
    let Some(server) = servers.get(&wanted).cloned() else {
        let known: Vec<&str> = servers.keys().map(String::as_str).collect();
        let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
        return Err(RouteError::UnknownServer { name: name(), server: wanted, known });
    };
    Ok(Route { id: next_id(), server, table })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn server(name: &str) -> ServerTable {
        ServerTable {
            name: name.to_owned(),
            url: format!("postgres://gate@{name}/own").into(),
            replicas: None,
        }
    }

    fn database(name: &str, server: &str) -> DatabaseTable {
        DatabaseTable { name: name.to_owned(), server: Some(server.to_owned()), ..DatabaseTable::default() }
    }

    fn routes(servers: &[&str], databases: Vec<DatabaseTable>) -> Result<Routes, RouteError> {
        Routes::of_tables(servers.iter().map(|name| server(name)).collect(), databases)
    }

    fn there(routes: &Routes, name: &str) -> Option<(String, String)> {
        let route = routes.find(name)?;
        Some((route.server.name.clone(), route.database(name).to_owned()))
    }

    fn pair(server: &str, database: &str) -> Option<(String, String)> {
        Some((server.to_owned(), database.to_owned()))
    }

    #[test]
    fn a_database_is_found_by_its_name_before_the_wildcard() {
        let live = DatabaseTable { database: Some("shop_live".to_owned()), ..database("shop", "a") };
        let both = routes(&["a", "b"], vec![live.clone(), database(ANY, "b")]).unwrap();
        assert_eq!(there(&both, "shop"), pair("a", "shop_live"));
        assert_eq!(there(&both, "other"), pair("b", "other"));
        assert_eq!(both.first_name(), "shop");
        let one = routes(&["a", "b"], vec![live]).unwrap();
        assert_eq!(there(&one, "other"), None);
        let any = routes(&["a"], vec![database(ANY, "a")]).unwrap();
        assert_eq!(any.first_name(), "own");
        let single = Routes::single("postgres://gate@x/own".parse().unwrap(), Vec::new());
        assert_eq!(there(&single, "some"), pair("upstream", "some"));
        assert_eq!(single.first_name(), "own");
    }

    #[test]
    fn tables_that_contradict_are_rejected_with_the_table_and_the_remedy() {
        let message = |servers: &[&str], databases| routes(servers, databases).unwrap_err().to_string();
        let nowhere = DatabaseTable { server: None, ..database("shop", "a") };
        let password = DatabaseTable { password: Some("pw".to_owned().into()), ..database("shop", "a") };
        for (databases, words) in [
            (vec![], ["[[database]]", "name = \"*\""]),
            (vec![nowhere], ["\"shop\" names no server", "server ="]),
            (vec![database("shop", "c")], ["no such [[server]]", "there are: a, b"]),
            (vec![database("shop", "a"), database("shop", "b")], ["two [[database]]", "\"shop\""]),
            (vec![database(ANY, "a"), database(ANY, "b")], ["two [[database]]", "\"*\""]),
            (vec![database("", "a")], ["[[database]]", "name ="]),
            (vec![database("hotrow", "a")], ["console", "another name"]),
            (vec![password], ["password without a user", "user ="]),
        ] {
            let error = message(&["a", "b"], databases);
            assert!(words.iter().all(|word| error.contains(word)), "{error}");
        }
        let twice = message(&["a", "a"], vec![database("shop", "a")]);
        assert!(twice.contains("two [[server]] tables have the name \"a\""), "{twice}");
        let wrong = Routes::of_tables(
            vec![ServerTable { name: "a".to_owned(), url: "mysql://x".to_owned().into(), replicas: None }],
            vec![database("shop", "a")],
        );
        let wrong = wrong.unwrap_err().to_string();
        assert!(wrong.contains("[[server]] \"a\"") && wrong.contains("mysql://"), "{wrong}");
        let replicas = "host=b target_session_attrs=read-write".to_owned();
        let replicas = ServerTable { replicas: Some(replicas.into()), ..server("a") };
        let wrong = Routes::of_tables(vec![replicas], vec![database("shop", "a")]).unwrap_err().to_string();
        assert!(wrong.starts_with("replicas of [[server]] \"a\"") && wrong.contains("standbys"), "{wrong}");
    }

    #[test]
    fn secrets_of_tables_are_not_printed() {
        let table = DatabaseTable {
            user: Some("app".to_owned()),
            password: Some("hush".to_owned().into()),
            ..database("shop", "a")
        };
        let servers = vec![ServerTable {
            name: "a".to_owned(),
            url: "postgres://u:hush@a/x".to_owned().into(),
            replicas: None,
        }];
        let shown =
            format!("{:?} {:?}", servers[0], Routes::of_tables(servers.clone(), vec![table]).unwrap());
        assert!(!shown.contains("hush") && shown.contains("app"), "{shown}");
    }

    #[test]
    fn a_reload_keeps_what_has_not_changed() {
        let before =
            routes(&["a", "b"], vec![database("x", "a"), database("y", "b"), database("z", "b")]).unwrap();
        let moved = vec![database("x", "a"), database("y", "a"), database("new", "b")];
        let after = routes(&["a", "b"], moved).unwrap().replacing(&before);
        let same = |name: &str| after.find(name).unwrap() == before.find(name).unwrap();
        assert!(same("x") && !same("y"));
        assert!(after.find("z").is_none() && !after.has(before.find("z").unwrap()));
        assert_eq!(after.find("new").unwrap().server.id, before.find("y").unwrap().server.id);
        let elsewhere = ServerTable { url: "postgres://gate@c/own".to_owned().into(), ..server("a") };
        let elsewhere =
            Routes::of_tables(vec![elsewhere], vec![database("x", "a")]).unwrap().replacing(&before);
        assert!(!elsewhere.has(before.find("x").unwrap()), "the server's URL has changed");
        assert!(!elsewhere.has_server(before.find("x").unwrap().server.id));
        let with_replica = ServerTable { replicas: Some("host=c".to_owned().into()), ..server("a") };
        let with_replica =
            Routes::of_tables(vec![with_replica], vec![database("x", "a")]).unwrap().replacing(&before);
        assert_eq!(with_replica.find("x").unwrap().server.replicas.len(), 1);
        assert!(!with_replica.has(before.find("x").unwrap()), "the server's replicas have changed");
        let upstream = || Routes::single("postgres://gate@x/own".parse().unwrap(), Vec::new());
        assert!(upstream().replacing(&before).has(before.find("z").unwrap()), "needs a restart");
        let single = upstream();
        assert!(upstream().replacing(&single).has(single.first()));
    }

    #[test]
    fn maintenance_is_done_once_in_each_database() {
        let alias = DatabaseTable { database: Some("x".to_owned()), ..database("alias", "a") };
        let all =
            routes(&["a", "b"], vec![database("x", "a"), alias, database("x2", "b"), database(ANY, "b")]);
        let names: Vec<String> = all.unwrap().with_maintenance().into_iter().map(|(name, _)| name).collect();
        assert_eq!(names, ["alias", "x2", "own"]);
    }

    #[test]
    fn the_users_password_is_the_tables_or_that_of_the_url() {
        let servers = || {
            vec![ServerTable {
                name: "a".to_owned(),
                url: "postgres://gate:own@a".to_owned().into(),
                replicas: None,
            }]
        };
        let password = |user: &str, password: Option<&str>| {
            let table = DatabaseTable {
                user: Some(user.to_owned()),
                password: password.map(|text| text.to_owned().into()),
                ..database("x", "a")
            };
            let routes = Routes::of_tables(servers(), vec![table]).unwrap();
            routes.first().password().map(|password| password.bytes().to_vec())
        };
        assert_eq!(password("app", Some("pw")).as_deref(), Some(&b"pw"[..]));
        assert_eq!(password("gate", None).as_deref(), Some(&b"own"[..]));
        assert_eq!(password("app", None), None);
    }
}
