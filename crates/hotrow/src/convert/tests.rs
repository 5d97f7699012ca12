//! Tests of whole conversions, with files as users have them. The results are read by the program's own settings.

use hotrow_gateway::config::Config;

use super::output::Converted;
use super::{pgbouncer, pgcat};
use crate::settings::Settings;

const ALL: &str = include_str!("samples/all.ini");

fn from_ini(text: &str) -> Converted {
    pgbouncer::convert(text, &|user| (user == "gate").then(|| "gates pw".to_owned())).unwrap()
}

/// The settings as the program reads them. The file for access and users are not read here.
fn load(converted: &Converted) -> Config {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("hotrow.toml");
    let text = converted.settings("test");
    std::fs::write(&file, &text).unwrap();
    match Settings::default().resolve(Some(&file)) {
        Ok(resolved) => resolved.config,
        Err(error) => panic!("{error}\n{text}"),
    }
}

fn note<'a>(converted: &'a Converted, place: &str) -> &'a str {
    let found = converted.notes.iter().find(|note| note.place.ends_with(place));
    found.map_or_else(|| panic!("no note about {place}: {:#?}", converted.notes), |note| &note.text)
}

/// `server's hosts/database, user`, for a client of `database`.
fn route(config: &Config, database: &str) -> String {
    let route = config.routes.find(database).unwrap();
    let hosts = &route.server.upstream.hosts;
    format!("{hosts}/{} {}", route.database(database), route.forced_user().unwrap_or("-"))
}

#[test]
fn databases_of_pgbouncer_reach_the_same_servers() {
    let config = load(&from_ini(ALL));
    assert_eq!(route(&config, "shop"), "127.0.0.1:5433/shop_live app");
    assert_eq!(route(&config, "audit"), "127.0.0.1:5434,127.0.0.2:5434/audit -");
    assert_eq!(route(&config, "local"), "/var/run/postgresql/.s.PGSQL.5432/local -");
    assert_eq!(route(&config, "my \"odd\" name"), "/var/run/postgresql/.s.PGSQL.5432/odd -");
    assert_eq!(route(&config, "any other"), "127.0.0.1:5435/any other -");
    let own = |name: &str| {
        let upstream = &config.routes.find(name).unwrap().server.upstream;
        let password =
            upstream.password.as_ref().map(|password| String::from_utf8_lossy(password.bytes()).into_owned());
        (upstream.user.clone(), password, upstream.database.clone())
    };
    assert_eq!(own("shop"), ("gate".to_owned(), Some("gates pw".to_owned()), "postgres".to_owned()));
    assert_eq!(own("audit"), ("reader".to_owned(), None, "postgres".to_owned()));
    assert!(config.routes.find("audit").unwrap().server.upstream.hosts.read_write);
    let password = config.routes.find("shop").unwrap().password().unwrap();
    assert_eq!(password.bytes(), b"it's");
}

#[test]
fn settings_of_pgbouncer_keep_their_values() {
    let converted = from_ini(ALL);
    let config = load(&converted);
    let listen: Vec<String> = config.listen.iter().map(|listen| format!("{listen:?}")).collect();
    assert_eq!(
        listen,
        ["Tcp(127.0.0.1:6499)", "Tcp([::1]:6499)", "Unix(\"/var/run/postgresql/.s.PGSQL.6499\")"]
    );
    assert_eq!((config.clients_max, config.message_bytes_max), (2000, 1 << 30));
    assert_eq!((config.held_wait.as_millis(), config.held_idle.as_secs()), (2500, 600));
    assert_eq!(config.auth_query, "SELECT usename, passwd FROM user_lookup($1)");
    assert_eq!(config.users_file.as_deref(), Some("/etc/pgbouncer/userlist.txt".as_ref()));
    assert_eq!(config.console.admins.as_deref(), Some(&["dba".to_owned(), "root".to_owned()][..]));
    assert!(config.tls.is_none(), "client_tls_sslmode is disable");
    assert_eq!(
        converted.access,
        ["local all,hotrow all scram-sha-256", "host all,hotrow all all scram-sha-256"]
    );

    let of = |database: &str, user: &str| {
        let of = config.of(config.routes.find(database).unwrap(), database, user);
        let table = of.table.unwrap();
        let bounds = [table.held_connections_max.map(|n| n.get()), table.clients_max.map(|n| n.get())];
        (bounds, format!("{:?}", table.settings), of.held_wait.as_millis())
    };
    let (bounds, settings, wait) = of("shop", "app");
    assert_eq!(
        (bounds, wait),
        ([Some(15), Some(300)], 5000),
        "the smaller of pool_size and max_db_connections"
    );
    assert!(settings.contains("Europe/Berlin") && settings.contains("120000ms"), "{settings}");
    assert_eq!(of("audit", "ann").0, [Some(50), Some(1000)], "the bounds for all databases");
    let (bounds, settings, wait) = of("any other", "app");
    assert_eq!((bounds, wait), ([Some(20), Some(200)], 7000), "the user's");
    assert!(settings.contains("30000ms") && settings.contains("10000ms"), "{settings}");
    assert_eq!(of("any other", "ann").0, [None, None]);
    assert!(of("any other", "ann").1.contains("120000ms"));
}

#[test]
fn every_key_of_pgbouncer_is_converted_or_has_advice() {
    let converted = from_ini(ALL);
    for note in &converted.notes {
        assert!(!note.text.contains("no such"), "{note:?}");
        assert!(note.place.starts_with("line ") || note.place == "unix_socket_dir", "{note:?}");
    }
    for key in [
        "logfile",
        "default_pool_size",
        "server_lifetime",
        "so_reuseport",
        "pool_mode",
        "peer_id",
        "auth_ldap_options",
        "connect_query",
        "load_balance_hosts",
        "client_tls_key_file",
    ] {
        assert!(note(&converted, key).len() > 10);
    }
    assert!(note(&converted, "audit: host").contains("in their order"));
    assert!(note(&converted, "archive: target_session_attrs").contains("no counterpart"));
    assert!(note(&converted, "line 116").contains("more.ini is not read"));
    let unknown = from_ini("[databases]\na = host=x hots=y\n[pgbouncer]\nauth_typ = md5\n[odd]\nx = 1\n");
    for place in ["a: hots", "auth_typ", "line 6: x"] {
        assert!(note(&unknown, place).contains("no such") || note(&unknown, place).contains("no section"));
    }
}

#[test]
fn a_minimal_pgbouncer_file_is_converted_without_extra_settings() {
    let converted = from_ini(include_str!("samples/small.ini"));
    let config = load(&converted);
    assert_eq!(route(&config, "template1"), "localhost:5432/template1 -");
    assert!(config.routes.find("other").is_none());
    assert_eq!(config.auth_query, "", "without auth_user PgBouncer asks no server");
    assert!(note(&converted, "template1").contains("\"someuser\""));
    assert!(note(&converted, "listen_addr").contains("0.0.0.0"));
    assert_eq!(converted.access[1], "host all,hotrow all all md5");
    let trusting = from_ini("[databases]\na = host=x\n[pgbouncer]\nauth_type = trust\nlisten_addr = *\n");
    assert!(note(&trusting, "auth_type").contains("this machine only"));
}

#[test]
fn wrong_lines_of_pgbouncer_are_named() {
    let wrong = |text: &str| pgbouncer::convert(text, &|_| None).unwrap_err().to_string();
    assert!(wrong("[databases]\n\na = host='x\n").starts_with("line 3: "));
    assert!(wrong("[databases]\na\n").starts_with("line 2: "));
}

#[test]
fn pools_of_pgcat_reach_the_same_servers() {
    let converted = pgcat::convert(include_str!("samples/pgcat.toml")).unwrap();
    let config = load(&converted);
    assert_eq!(route(&config, "simple_db"), "10.0.0.1:5432,10.0.0.2:5433/some_db -");
    assert!(config.routes.find("simple_db").unwrap().server.upstream.hosts.read_write);
    assert_eq!(route(&config, "mapped"), "10.0.0.3:5432/mapped app");
    assert_eq!(config.routes.find("mapped").unwrap().password().unwrap().bytes(), b"apps");
    assert!(
        config.routes.find("sharded_db").is_none(),
        "a pool with shards must not send all rows to one of them"
    );
    assert!(note(&converted, "pools.sharded_db").contains("2 shards"));
    assert_eq!(format!("{:?}", config.listen), "[Tcp(127.0.0.1:6433)]");
    assert_eq!((config.held_idle.as_secs(), config.drain_timeout.as_secs()), (30, 60));
    let users: Vec<&str> = converted.users.keys().map(String::as_str).collect();
    assert_eq!(users, ["admin_user", "other_user", "simple_user"]);
    let file = hotrow_auth::Users::parse(&converted.users_file()).unwrap();
    let secrets: std::collections::HashMap<_, _> = file.into_secrets().collect();
    assert_eq!(secrets["other_user"], hotrow_auth::Secret::parse("other \"pass").unwrap());
    assert_eq!(secrets["simple_user"], hotrow_auth::Secret::parse("another password").unwrap());
    assert!(note(&converted, "pools.simple_db.users.0").contains("another password"));
    let table =
        |user: &str| config.of(config.routes.find("simple_db").unwrap(), "simple_db", user).table.unwrap();
    assert_eq!(table("simple_user").held_connections_max.map(|n| n.get()), Some(5));
    assert!(format!("{:?}", table("simple_user").settings).contains("15000ms"));
    assert_eq!(table("other_user").held_connections_max.map(|n| n.get()), Some(7));
    assert!(note(&converted, "general.some_new_key").contains("not known"));
    for place in
        ["general.ban_time", "general.connect_timeout", "simple_db.primary_reads_enabled", "simple_db.shards"]
    {
        assert!(!note(&converted, place).contains("not known"), "{place}");
    }
    for note in &converted.notes {
        assert!(!note.text.contains("apps") && !note.text.contains("other \"pass"), "a note has a password");
    }
}

#[test]
fn a_user_of_pgcat_reaches_only_the_pools_that_list_it() {
    let converted = pgcat::convert(include_str!("samples/pgcat.toml")).unwrap();
    let hba = hotrow_auth::Hba::parse(&converted.access.join("\n")).unwrap();
    let databases = ["simple_db", "mapped", "sharded_db", "hotrow", "some_db"];
    let of = |user: &str| -> Vec<&str> {
        let admits = |database: &&str| {
            let console = *database == hotrow_gateway::console::DATABASE;
            let address = Some("10.1.2.3".parse().unwrap());
            let attempt = hotrow_auth::LoginAttempt { address, tls: false, user, database, console };
            hba.decide(&attempt).is_some()
        };
        databases.into_iter().filter(admits).collect()
    };
    assert_eq!(of("simple_user"), ["simple_db", "mapped"]);
    assert_eq!(of("other_user"), ["simple_db"]);
    assert_eq!(of("admin_user"), ["hotrow"]);
    assert!(of("sharding_user").is_empty(), "its pool is not converted");
    assert!(of("stranger").is_empty());
}

#[test]
fn databases_of_one_server_have_one_table() {
    let ini = "[databases]\n* = host=db\nshop = host=db\norders = host=db dbname=orders_live\nother = host=db port=5433\n\
        [pgbouncer]\nauth_user = gate\nauth_query = select * from pgbouncer.get_auth($1)\n";
    let converted = from_ini(ini);
    let config = load(&converted);
    let of = |name: &str| {
        let server = &config.routes.find(name).unwrap().server;
        (server.name.clone(), server.upstream.database.clone())
    };
    let first = ("db".to_owned(), "shop".to_owned());
    assert_eq!([of("shop"), of("orders"), of("any")], [first.clone(), first.clone(), first]);
    assert_eq!(of("other"), ("db-2".to_owned(), "other".to_owned()));
    let said = note(&converted, "auth_query");
    assert!(said.contains("\"shop\" of [[server]] db, \"other\" of [[server]] db-2"), "{said}");

    let alone = from_ini("[databases]\n* = host=db\n[pgbouncer]\nauth_user = gate\nauth_query = x $1\n");
    assert!(note(&alone, "auth_query").contains("\"postgres\" of [[server]] db"));
    let named = from_ini(
        "[databases]\na = host=db auth_dbname=x\nb = host=db auth_dbname=y\n[pgbouncer]\nauth_user = gate\nauth_query = x $1\n",
    );
    assert!(named.notes.iter().all(|note| !note.place.ends_with("auth_query")), "{:?}", named.notes);
    assert!(note(&named, "[[server]]").contains("2 [[server]] tables (db, db-2)"));
}

/// The keys of a table and of the tables in it, each with its path.
fn keys(table: &toml::Table, path: &[String], found: &mut Vec<Vec<String>>) {
    for (key, value) in table {
        let here = [path, std::slice::from_ref(key)].concat();
        match value.as_table() {
            Some(inner) if key != "plugins" => keys(inner, &here, found),
            _ => found.push(here),
        }
    }
}

#[test]
fn every_key_of_pgcat_is_converted_or_has_advice() {
    let whole: toml::Table = include_str!("samples/pgcat_all.toml").parse().unwrap();
    let result = |table: &toml::Table| {
        let converted = pgcat::convert(&table.to_string()).unwrap();
        let text = format!("{}{}{:?}", converted.settings("test"), converted.users_file(), converted.access);
        (text, converted.notes)
    };
    let (text, notes) = result(&whole);
    let mut all = Vec::new();
    keys(&whole, &[], &mut all);
    assert!(all.len() > 80, "{all:?}");
    for path in all {
        let place = path.join(".");
        if let Some(note) = notes.iter().find(|note| note.place == place) {
            assert!(!note.text.contains("not known"), "{place}: {}", note.text);
            continue;
        }
        let mut without = whole.clone();
        let (key, tables) = path.split_last().unwrap();
        let table = tables.iter().fold(&mut without, |table, name| table[name].as_table_mut().unwrap());
        table.remove(key);
        assert_ne!(result(&without).0, text, "{place} changes nothing and has no advice");
    }
}
