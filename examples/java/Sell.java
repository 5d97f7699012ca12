// Sells a hundred phones to ten thousand buyers through Hotrow with JDBC: 64 threads, a connection each, plain SQL.

import java.net.URI;
import java.sql.*;
import java.util.*;
import java.util.concurrent.*;
import java.util.concurrent.atomic.AtomicInteger;

public class Sell {
    static final int STOCK = 100, BUYERS = 10_000, WORKERS = 64, TRIES = 10;
    static final String ITEM = System.getenv().getOrDefault("ITEM", "phone-java");

    /** A statement that can be repeated safely: sets its values, runs, reads the first row. */
    interface Call<T> {
        T run(Connection connection) throws SQLException;
    }

    /** A connection that is replaced if it is lost. */
    static class Line implements AutoCloseable {
        private Connection connection;

        <T> T call(Call<T> call) throws Exception {
            for (int attempt = 1; ; attempt++) {
                try {
                    if (connection == null) connection = connect();
                    return call.run(connection);
                } catch (SQLException error) {
                    close();
                    if (attempt == TRIES || !connectionLost(error)) throw error;
                    Thread.sleep(100L * attempt);
                }
            }
        }

        @Override
        public void close() throws SQLException {
            if (connection != null) connection.close();
            connection = null;
        }
    }

    /** Class 08, which the driver also reports for broken sockets, or a server that stops or starts. */
    static boolean connectionLost(SQLException error) {
        String state = Objects.requireNonNullElse(error.getSQLState(), "");
        return state.startsWith("08") || state.startsWith("57P0");
    }

    /** Connects to DATABASE_URL, in the form of other drivers: postgres://user:password@host:port/database. */
    static Connection connect() throws SQLException {
        var url = URI.create(System.getenv("DATABASE_URL"));
        String[] login = Objects.requireNonNullElse(url.getUserInfo(), "").split(":", 2);
        var properties = new Properties();
        properties.setProperty("user", login[0]);
        if (login.length == 2) properties.setProperty("password", login[1]);
        int port = url.getPort() < 0 ? 5432 : url.getPort();
        return DriverManager.getConnection("jdbc:postgresql://" + url.getHost() + ":" + port + url.getPath(), properties);
    }

    /** The columns of the first row. */
    static Object[] row(Connection connection, String sql, Object... values) throws SQLException {
        try (var statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) statement.setObject(i + 1, values[i]);
            try (var rows = statement.executeQuery()) {
                rows.next();
                var columns = new Object[rows.getMetaData().getColumnCount()];
                for (int i = 0; i < columns.length; i++) columns[i] = rows.getObject(i + 1);
                return columns;
            }
        }
    }

    /** The statuses that one buyer receives. */
    static List<String> buy(Line line, String buyer) throws Exception {
        // Generated once per purchase: a call repeated with the same ID gets the recorded answer and not a second phone.
        var requestId = UUID.randomUUID();
        var answer = line.call(c -> row(c, "select * from hotrow.reserve(?, ?, 1, ?)", ITEM, buyer, requestId));
        String status = (String) answer[0];
        if (!status.equals("reserved")) return List.of(status);
        // Here a shop would charge the buyer. A repeated confirm returns "confirmed" again, so it needs no request ID.
        var confirmation = line.call(c -> row(c, "select * from hotrow.confirm(?)", answer[1]));
        return List.of(status, (String) confirmation[0]);
    }

    /** Serves buyers until there are no more, and counts the statuses that they receive. */
    static Map<String, Integer> work(AtomicInteger next) throws Exception {
        var counts = new TreeMap<String, Integer>();
        try (var line = new Line()) {
            for (int number; (number = next.getAndIncrement()) < BUYERS; )
                for (var status : buy(line, "buyer " + number)) counts.merge(status, 1, Integer::sum);
        }
        return counts;
    }

    public static void main(String[] arguments) throws Exception {
        try (var line = new Line()) {
            var created = line.call(c -> row(c, "select hotrow.create_sale(?, stock => ?, per_buyer => 1, hold => '10 minutes')", ITEM, STOCK));
            // "exists" is also correct: the call may have been repeated after a lost connection.
            if (!List.of("created", "exists").contains(created[0])) {
                System.err.printf("create_sale returned %s: set ITEM to a name that no other sale has, not %s%n", created[0], ITEM);
                System.exit(1);
            }
            long started = System.nanoTime();
            var next = new AtomicInteger();
            var counts = new TreeMap<String, Integer>();
            var workers = Executors.newFixedThreadPool(WORKERS);
            Callable<Map<String, Integer>> worker = () -> work(next);
            var results = workers.invokeAll(Collections.nCopies(WORKERS, worker));
            workers.shutdown();
            for (var part : results) part.get().forEach((status, count) -> counts.merge(status, count, Integer::sum));
            double seconds = (System.nanoTime() - started) / 1e9;
            var sale = line.call(c -> row(c, "select sold, remaining from hotrow.sale(?)", ITEM));
            int confirmed = Objects.requireNonNullElse(counts.remove("confirmed"), 0);
            var answers = new StringJoiner(", ");
            counts.forEach((status, count) -> answers.add(count + " " + status));
            System.out.printf(Locale.ROOT, "sold %s of %d to %d buyers in %.1f s (%s)%n", sale[0], STOCK, BUYERS, seconds, answers);
            boolean right = sale[0].equals((long) STOCK) && sale[1].equals(0L) && confirmed <= STOCK;
            System.exit(right ? 0 : 1);
        }
    }
}
