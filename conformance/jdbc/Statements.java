// Tests how applications use statements: prepared at every threshold and in every query mode, in batches, from a pool, with
// cursors, generated keys, updated result sets, functions, several in one text, and the contents of errors.

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;
import org.postgresql.util.PSQLException;

class Statements extends Suite {
    static void add() {
        for (int threshold : new int[] {-1, 0, 1, 2, 5}) {
            for (String mode : List.of("extended", "extendedForPrepared", "extendedCacheEverything", "simple")) {
                TESTS.put("prepareThreshold=" + threshold + ", preferQueryMode=" + mode, () -> prepared(threshold, mode));
            }
        }
        for (boolean rewrite : new boolean[] {true, false}) {
            TESTS.put("batches, reWriteBatchedInserts=" + rewrite, () -> batches(rewrite));
        }
        TESTS.put("a batch that fails", Statements::failingBatch);
        TESTS.put("HikariCP, a pool of 50 for 100 threads", Statements::pool);
        TESTS.put("setFetchSize and setMaxRows", Statements::fetchSize);
        TESTS.put("a scrolled and updated result set", Statements::updatable);
        TESTS.put("generated keys", Statements::generatedKeys);
        TESTS.put("functions, procedures and their cursors", Statements::functions);
        TESTS.put("several statements in one text", Statements::several);
        TESTS.put("warnings and the contents of errors", Statements::errors);
        for (String autosave : List.of("always", "conservative", "never")) {
            TESTS.put("a plan whose result changes, autosave=" + autosave, () -> changedPlan(autosave));
        }
    }

    static void prepared(int threshold, String mode) throws Exception {
        try (Connection c = connect("prepareThreshold=" + threshold, "preferQueryMode=" + mode);
             PreparedStatement update = c.prepareStatement(UPDATE);
             PreparedStatement read = c.prepareStatement("select stock, label from item where id = ?")) {
            for (int i = 1; i <= 12; i++) {
                check(1, sell(update, 1, 3));
                read.setInt(1, 3);
                try (ResultSet rows = read.executeQuery()) {
                    check(true, rows.next());
                    check(1000 - i, rows.getInt(1));
                    check("item 3", rows.getString(2));
                    check(false, rows.next());
                }
            }
            check(0, sell(update, 1, 99));
            fails("23514", () -> execute(c, "update item set stock = -1 where id = 3"));
            check(1, sell(update, 1, 3));
        }
    }

    static void batches(boolean rewrite) throws Exception {
        try (Connection c = connect("reWriteBatchedInserts=" + rewrite)) {
            for (boolean auto : new boolean[] {true, false}) {
                c.setAutoCommit(auto);
                try (PreparedStatement insert = c.prepareStatement("insert into event (item, note) values (?, ?)")) {
                    for (int i = 0; i < 500; i++) {
                        insert.setInt(1, 1 + i % 20);
                        insert.setString(2, "note " + i);
                        insert.addBatch();
                    }
                    check(500, insert.executeBatch().length);
                }
                if (!auto) {
                    c.commit();
                }
            }
            c.setAutoCommit(true);
            check(1000, value(c, "select count(*) from event"));
            try (PreparedStatement update = c.prepareStatement(UPDATE)) {
                for (int i = 0; i < 300; i++) {
                    update.setInt(1, 1);
                    update.setInt(2, 1 + i % 3);
                    update.setInt(3, 1);
                    update.addBatch();
                }
                check(300, Arrays.stream(update.executeBatch()).sum());
            }
            check("900,900,900", value(c, "select string_agg(stock::text, ',') from item where id <= 3"));
        }
    }

    static void failingBatch() throws Exception {
        try (Connection c = connect(); PreparedStatement insert = c.prepareStatement("insert into item values (?, ?, 'x')")) {
            for (int stock : new int[] {1, 2, -3, 4}) {
                insert.setInt(1, 100 + stock);
                insert.setInt(2, stock);
                insert.addBatch();
            }
            BatchUpdateException error = (BatchUpdateException) fails("23514", insert::executeBatch);
            check(4, error.getUpdateCounts().length);
            check(0, value(c, "select count(*) from item where id > 90"));
        }
    }

    static void pool() throws Exception {
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl(url("ApplicationName=pooled"));
        config.setMaximumPoolSize(50);
        config.setConnectionTestQuery("select 1");
        AtomicInteger sold = new AtomicInteger();
        try (HikariDataSource pool = new HikariDataSource(config)) {
            ExecutorService threads = Executors.newFixedThreadPool(100);
            List<Future<?>> work = new ArrayList<>();
            for (int thread = 0; thread < 100; thread++) {
                int id = 1 + thread % 4;
                work.add(threads.submit(() -> {
                    for (int i = 0; i < 40; i++) {
                        try (Connection c = pool.getConnection(); PreparedStatement update = c.prepareStatement(UPDATE)) {
                            sold.addAndGet(sell(update, 1, id));
                            if (i % 10 == 0) {
                                c.setAutoCommit(false);
                                c.setTransactionIsolation(Connection.TRANSACTION_SERIALIZABLE);
                                c.setReadOnly(true);
                                check("on", value(c, "show transaction_read_only"));
                                c.rollback();
                            }
                        }
                    }
                    return null;
                }));
            }
            for (Future<?> done : work) {
                done.get(60, TimeUnit.SECONDS);
            }
            threads.shutdown();
        }
        try (Connection c = connect()) {
            check(4000, sold.get());
            check(0, value(c, "select sum(stock) from item where id <= 4"));
        }
    }

    static void fetchSize() throws Exception {
        try (Connection c = connect()) {
            c.setAutoCommit(false);
            try (Statement statement = c.createStatement()) {
                statement.setFetchSize(7);
                try (ResultSet rows = statement.executeQuery("select n, repeat('x', n) from generate_series(1, 1000) n")) {
                    int seen = 0;
                    while (rows.next()) {
                        check(++seen, rows.getInt(1));
                        check(seen, rows.getString(2).length());
                        if (seen % 300 == 0) {
                            check(1000, value(c, "select stock from item where id = 1"));
                        }
                    }
                    check(1000, seen);
                }
                statement.setMaxRows(3);
                try (ResultSet rows = statement.executeQuery("select * from item order by id")) {
                    check(true, rows.next() && rows.next() && rows.next() && !rows.next());
                }
            }
            c.rollback();
        }
    }

    static void updatable() throws Exception {
        try (Connection c = connect();
             Statement statement = c.createStatement(ResultSet.TYPE_SCROLL_INSENSITIVE, ResultSet.CONCUR_UPDATABLE);
             ResultSet rows = statement.executeQuery("select id, stock, label from item order by id")) {
            check(true, rows.absolute(5));
            rows.updateInt("stock", 7);
            rows.updateRow();
            check(true, rows.previous());
            rows.deleteRow();
            rows.moveToInsertRow();
            rows.updateInt("id", 400);
            rows.updateInt("stock", 4);
            rows.insertRow();
            check("7 20", value(c, "select (select stock from item where id = 5) || ' ' || count(*) from item"));
        }
    }

    static void generatedKeys() throws Exception {
        try (Connection c = connect();
             PreparedStatement insert =
                 c.prepareStatement("insert into event (item, note) values (?, ?)", Statement.RETURN_GENERATED_KEYS)) {
            for (int i = 1; i <= 10; i++) {
                insert.setInt(1, i);
                insert.setString(2, "n");
                check(1, insert.executeUpdate());
                try (ResultSet keys = insert.getGeneratedKeys()) {
                    check(true, keys.next());
                    check(i, keys.getLong("id"));
                }
            }
            String update = "update item set stock = 5 where id = 6";
            try (PreparedStatement statement = c.prepareStatement(update, new String[] {"stock", "label"})) {
                statement.executeUpdate();
                ResultSet keys = statement.getGeneratedKeys();
                check(true, keys.next());
                check("5 item 6", keys.getInt(1) + " " + keys.getString(2));
            }
        }
    }

    static void functions() throws Exception {
        try (Connection c = connect()) {
            execute(c, "create or replace function twice(int, out int) language sql as 'select $1 * 2'",
                "create or replace function items() returns refcursor language plpgsql as "
                    + "$$ declare c refcursor; begin open c for select id from item; return c; end $$",
                "create or replace procedure restock(inout id int) language plpgsql as "
                    + "$$ begin update item set stock = 5; id = id + 1; end $$");
            try (CallableStatement call = c.prepareCall("{ ? = call twice(?) }")) {
                call.registerOutParameter(1, Types.INTEGER);
                call.setInt(2, 21);
                call.execute();
                check(42, call.getInt(1));
            }
            c.setAutoCommit(false);
            try (CallableStatement call = c.prepareCall("{ ? = call items() }")) {
                call.registerOutParameter(1, Types.REF_CURSOR);
                call.execute();
                ResultSet rows = (ResultSet) call.getObject(1);
                int count = 0;
                while (rows.next()) {
                    count++;
                }
                check(20, count);
            }
            c.commit();
            c.setAutoCommit(true);
            try (CallableStatement call = c.prepareCall("call restock(?)")) {
                call.setInt(1, 1);
                call.registerOutParameter(1, Types.INTEGER);
                call.execute();
                check(2, call.getInt(1));
            }
        }
    }

    static void several() throws Exception {
        String texts = "update item set stock = 9 where id = 1; select stock from item where id = 1; select 2";
        try (Connection c = connect(); Statement statement = c.createStatement()) {
            check(false, statement.execute(texts));
            check(1, statement.getUpdateCount());
            check(true, statement.getMoreResults());
            statement.getResultSet().next();
            check(9, statement.getResultSet().getInt(1));
            check(true, statement.getMoreResults());
            fails("22012", () -> statement.execute("update item set stock = 8 where id = 1; select 1 / 0"));
            check(9, value(c, "select stock from item where id = 1"));
        }
    }

    static void errors() throws Exception {
        try (Connection c = connect(); Statement statement = c.createStatement()) {
            statement.execute("do $$ begin raise warning 'mind the gap' using hint = 'jump'; end $$");
            check("mind the gap", statement.getWarnings().getMessage());
            PSQLException error = (PSQLException) fails("23505", () -> execute(c, "insert into item values (1, 1, 'again')"));
            check("item_pkey", error.getServerErrorMessage().getConstraint());
            check("Key (id)=(1) already exists.", error.getServerErrorMessage().getDetail());
            error = (PSQLException) fails("42703", () -> execute(c, "select nothing from item"));
            check(8, error.getServerErrorMessage().getPosition());
        }
    }

    static void changedPlan(String autosave) throws Exception {
        try (Connection c = connect("autosave=" + autosave, "prepareThreshold=1");
             Connection other = connect();
             PreparedStatement read = c.prepareStatement("select * from item where id = ?")) {
            read.setInt(1, 1);
            for (int i = 0; i < 4; i++) {
                try (ResultSet rows = read.executeQuery()) {
                    check(3, rows.getMetaData().getColumnCount());
                }
            }
            execute(other, "alter table item add column more int");
            try (ResultSet rows = read.executeQuery()) {
                check(4, rows.getMetaData().getColumnCount());
            }
        }
    }
}
