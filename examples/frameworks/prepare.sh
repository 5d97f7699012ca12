#!/usr/bin/env bash
# Downloads the frameworks in the specified versions, with each language's package manager, and builds the programs.
set -euo pipefail
cd "$(dirname "$0")"

need() {
    command -v "$1" > /dev/null || { echo "the frameworks need $1: install $2" >&2; exit 1; }
}
need python3 "Python 3.10 or newer with venv (Debian: python3-venv)"
need java "a JDK, 17 or newer (Debian: default-jdk-headless)"
need mvn "Maven (Debian: maven)"
need node "Node.js, 20.19 or newer (Debian: nodejs)"
need npm "npm (Debian: npm)"
need go "Go, 1.25 or newer (Debian: golang-go)"
need cargo "Rust, 1.94 or newer"
need ruby "Ruby (Debian: ruby)"
ruby -e 'require "active_record"; require "pg"' 2> /dev/null ||
    { echo "the frameworks need Active Record and pg: install ruby-activerecord and ruby-pg of Debian" >&2; exit 1; }
need php "PHP (Debian: php-cli)"
for file in Illuminate/Database Doctrine/ORM Symfony/Component/Cache; do
    php -r 'exit(extension_loaded("pdo_pgsql") && stream_resolve_include_path("$argv[1]/autoload.php") ? 0 : 1);' "$file" || {
        echo "the frameworks need Eloquent and Doctrine: install php-pgsql, php-illuminate-database, php-doctrine-orm and" \
            "php-symfony-cache of Debian" >&2
        exit 1
    }
done

target=$PWD/../../target
[ -x "$target/frameworks-python/bin/pip" ] || python3 -m venv "$target/frameworks-python"
"$target/frameworks-python/bin/pip" install --quiet --requirement python/requirements.txt
(cd java && mvn --quiet --batch-mode compile dependency:copy-dependencies)
(cd node && npm ci --silent --no-audit --no-fund --ignore-scripts)
# Prisma's generator downloads a program that only its migrations use, unless it is given the path of one.
(cd node && PRISMA_SCHEMA_ENGINE_BINARY=$(type -P true) npx prisma generate > /dev/null)
(cd go && go build -o "$target/frameworks-go/" ./gorm ./bun ./sqlc)
(cd rust && cargo build --quiet --locked --release --target-dir "$target/frameworks-rust") ||
    { echo "Diesel links libpq: install libpq-dev" >&2; exit 1; }
