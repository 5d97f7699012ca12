// Tests how applications use sessions: transactions, savepoints, settings, locks, notifications, COPY, large objects, cancel
// requests and timeouts, metadata.

import java.io.ByteArrayInputStream;
import java.io.ByteArrayOutputStream;
import java.io.StringReader;
import java.nio.charset.StandardCharsets;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import org.postgresql.PGConnection;
import org.postgresql.PGNotification;
import org.postgresql.copy.CopyIn;
import org.postgresql.copy.CopyManager;
import org.postgresql.largeobject.LargeObject;
import org.postgresql.largeobject.LargeObjectManager;

class Sessions extends Suite {
    static void add() {
        for (String autosave : List.of("always", "conservative", "never")) {
            TESTS.put("autosave=" + autosave, () -> autosave(autosave));
        }
        TESTS.put("savepoints", Sessions::savepoints);
        TESTS.put("isolation and read only", Sessions::isolation);
        TESTS.put("two-phase commit", Sessions::twoPhase);
        TESTS.put("settings", Sessions::settings);
        TESTS.put("temporary tables and session locks", Sessions::own);
        TESTS.put("notifications", Sessions::notifications);
        TESTS.put("COPY in and out", Sessions::copy);
        TESTS.put("large objects", Sessions::largeObjects);
        TESTS.put("cancel", Sessions::cancel);
        TESTS.put("query timeout", Sessions::queryTimeout);
        TESTS.put("query timeout at a lock", Sessions::lockTimeout);
        TESTS.put("network timeout", Sessions::networkTimeout);
        TESTS.put("metadata", Sessions::metadata);
    }

    static void autosave(String autosave) throws Exception {
        try (Connection c = connect("autosave=" + autosave)) {
            c.setAutoCommit(false);
            try (PreparedStatement update = c.prepareStatement(UPDATE)) {
                check(1, sell(update, 1, 1));
                fails("23514", () -> execute(c, "update item set stock = -1 where id = 2"));
                if (autosave.equals("always")) {
                    check(1, sell(update, 1, 1));
                    c.commit();
                    check(998, value(c, "select stock from item where id = 1"));
                } else {
                    fails("25P02", () -> sell(update, 1, 1));
                    c.rollback();
                    check(1000, value(c, "select stock from item where id = 1"));
                }
            }
        }
    }

    static void savepoints() throws Exception {
        try (Connection c = connect()) {
            c.setAutoCommit(false);
            execute(c, "update item set stock = 1 where id = 1");
            Savepoint point = c.setSavepoint("before");
            fails("22012", () -> execute(c, "select 1 / 0"));
            c.rollback(point);
            execute(c, "update item set stock = 2 where id = 2");
            c.releaseSavepoint(point);
            c.commit();
            check("1,2", value(c, "select string_agg(stock::text, ',' order by id) from item where id < 3"));
        }
    }

    static void isolation() throws Exception {
        try (Connection a = connect(); Connection b = connect("readOnlyMode=always")) {
            a.setTransactionIsolation(Connection.TRANSACTION_REPEATABLE_READ);
            a.setAutoCommit(false);
            check(1000, value(a, "select stock from item where id = 1"));
            execute(b, "update item set stock = 1 where id = 1");
            check(1000, value(a, "select stock from item where id = 1"));
            fails("40001", () -> execute(a, "update item set stock = 2 where id = 1"));
            a.rollback();
            b.setReadOnly(true);
            fails("25006", () -> execute(b, "update item set stock = 2 where id = 1"));
            b.setReadOnly(false);
            execute(b, "update item set stock = 2 where id = 1");
        }
    }

    static void twoPhase() throws Exception {
        try (Connection c = connect(); Connection other = connect()) {
            c.setAutoCommit(false);
            execute(c, "update item set stock = 3 where id = 1", "prepare transaction 'jdbc'");
            c.commit();
            check(1000, value(other, "select stock from item where id = 1"));
            execute(other, "commit prepared 'jdbc'");
            check(3, value(other, "select stock from item where id = 1"));
        }
    }

    static void settings() throws Exception {
        try (Connection c = connect("ApplicationName=first", "options=-c%20statement_timeout=70000");
             Connection other = connect()) {
            String name = "select application_name from pg_stat_activity where pid = pg_backend_pid()";
            check("first", value(c, name));
            check("70s", value(c, "show statement_timeout"));
            c.setClientInfo("ApplicationName", "second");
            check("second", value(c, name));
            execute(c, "set search_path = pg_catalog", "set time zone 'Asia/Tokyo'");
            check("pg_catalog", value(c, "show search_path"));
            check("Asia/Tokyo", value(c, "show timezone"));
            check("1min", value(c, "select set_config('statement_timeout', '1min', false)"));
            check(0, value(other, "show statement_timeout"));
            c.setSchema("public");
            check(20, value(c, "select count(*) from item"));
        }
    }

    static void own() throws Exception {
        try (Connection c = connect(); Connection other = connect()) {
            execute(c, "create temporary table basket (id int)", "insert into basket values (1), (2)");
            check(2, value(c, "select count(*) from basket"));
            fails("42P01", () -> value(other, "select count(*) from basket"));
            check("t", value(c, "select pg_try_advisory_lock(77)"));
            check("f", value(other, "select pg_try_advisory_lock(77)"));
            check("t", value(c, "select pg_advisory_unlock(77)"));
            check("t", value(other, "select pg_try_advisory_lock(77)"));
        }
    }

    static void notifications() throws Exception {
        try (Connection listener = connect(); Connection other = connect()) {
            PGConnection received = listener.unwrap(PGConnection.class);
            execute(listener, "listen news");
            execute(listener, "notify news, 'own'");
            PGNotification own = received.getNotifications(5000)[0];
            check("own", own.getParameter());
            check(received.getBackendPID(), own.getPID());
            execute(other, "notify news, 'from afar'");
            check("from afar", received.getNotifications(5000)[0].getParameter());
            execute(listener, "unlisten *");
            execute(other, "notify news");
            check(1, value(listener, "select 1"));
            PGNotification[] late = received.getNotifications(100);
            check(0, late == null ? 0 : late.length);
        }
    }

    static void copy() throws Exception {
        try (Connection c = connect()) {
            CopyManager copy = c.unwrap(PGConnection.class).getCopyAPI();
            StringBuilder lines = new StringBuilder();
            for (int i = 1000; i < 6000; i++) {
                lines.append(i).append("\t1\tcopied\n");
            }
            check(5000, copy.copyIn("copy item from stdin", new StringReader(lines.toString())));
            ByteArrayOutputStream out = new ByteArrayOutputStream();
            check(5000, copy.copyOut("copy (select * from item where id >= 1000 order by id) to stdout", out));
            check(lines, out.toString(StandardCharsets.UTF_8));
            fails("22P02", () -> copy.copyIn("copy item from stdin", new ByteArrayInputStream("x\ty\tz\n".getBytes())));
            CopyIn in = copy.copyIn("copy item from stdin");
            in.writeToCopy("7000\t1\tx\n".getBytes(), 0, 9);
            in.cancelCopy();
            check(5020, value(c, "select count(*) from item"));
        }
    }

    static void largeObjects() throws Exception {
        byte[] bytes = new byte[300_000];
        new Random(7).nextBytes(bytes);
        try (Connection c = connect()) {
            c.setAutoCommit(false);
            LargeObjectManager objects = c.unwrap(PGConnection.class).getLargeObjectAPI();
            long oid = objects.createLO();
            try (LargeObject object = objects.open(oid, LargeObjectManager.READWRITE)) {
                object.write(bytes);
                object.seek(1000);
                check(bytes[1000], object.read(1)[0]);
                object.truncate64(200_000);
                check(200_000, object.size64());
            }
            c.commit();
            try (LargeObject object = objects.open(oid, LargeObjectManager.READ)) {
                check(true, Arrays.equals(Arrays.copyOf(bytes, 200_000), object.read(300_000)));
            }
            objects.delete(oid);
            c.commit();
            fails("42704", () -> objects.open(oid, LargeObjectManager.READ).read(1));
            c.rollback();
        }
    }

    static void cancel() throws Exception {
        try (Connection c = connect(); Statement statement = c.createStatement()) {
            ScheduledExecutorService timer = Executors.newSingleThreadScheduledExecutor();
            Future<?> cancel = timer.schedule(() -> {
                statement.cancel();
                return null;
            }, 300, TimeUnit.MILLISECONDS);
            fails("57014", () -> statement.execute("select pg_sleep(20)"));
            cancel.get();
            timer.shutdown();
            check(1, value(c, "select 1"));
        }
    }

    static void queryTimeout() throws Exception {
        try (Connection c = connect(); PreparedStatement sleep = c.prepareStatement("select pg_sleep(?)")) {
            sleep.setQueryTimeout(1);
            sleep.setInt(1, 20);
            fails("57014", sleep::executeQuery);
            sleep.setInt(1, 0);
            sleep.executeQuery().close();
            check(1, value(c, "select 1"));
        }
    }

    static void lockTimeout() throws Exception {
        try (Connection holder = connect(); Connection c = connect(); PreparedStatement update = c.prepareStatement(UPDATE)) {
            check(1, sell(update, 1, 1));
            holder.setAutoCommit(false);
            execute(holder, "update item set stock = 50 where id = 1");
            update.setQueryTimeout(1);
            fails("57014", () -> sell(update, 1, 1));
            holder.commit();
            check(1, sell(update, 1, 1));
            check(49, value(c, "select stock from item where id = 1"));
        }
    }

    static void networkTimeout() throws Exception {
        try (Connection c = connect("socketTimeout=1")) {
            fails("08006", () -> execute(c, "select pg_sleep(20)"));
            check(true, c.isClosed());
        }
    }

    static void metadata() throws Exception {
        try (Connection c = connect()) {
            DatabaseMetaData data = c.getMetaData();
            check(true, data.getDatabaseMajorVersion() >= 14);
            ResultSet keys = data.getPrimaryKeys(null, "public", "item");
            check(true, keys.next());
            check("id", keys.getString("COLUMN_NAME"));
            ResultSet columns = data.getColumns(null, "public", "item", "%");
            int count = 0;
            while (columns.next()) {
                count++;
            }
            check(3, count);
            check(true, c.isValid(5));
        }
    }
}
