// Repeats one update in threads, and prints how many updates were acknowledged.

package frameworks;

import java.net.URI;
import java.util.Collections;
import java.util.Locale;
import java.util.concurrent.Callable;
import java.util.concurrent.Executors;
import java.util.concurrent.atomic.LongAdder;

/** The command line of each program: setup|autocommit|wrapped|transaction URL WORKERS SECONDS. */
record Load(String variant, URI url, int workers, double seconds) {
    /** The virtual machine compiles the framework meanwhile. */
    private static final long WARM_UP_MILLIS = 8000;
    private static volatile boolean stopped;

    static Load parse(String[] arguments) {
        var url = URI.create(arguments[1]);
        if (arguments.length == 2) return new Load(arguments[0], url, 1, 0);
        return new Load(arguments[0], url, Integer.parseInt(arguments[2]), Double.parseDouble(arguments[3]));
    }

    String jdbc() {
        return "jdbc:postgresql://" + url.getHost() + ":" + url.getPort() + url.getPath();
    }

    String user() {
        return url.getUserInfo();
    }

    /** Runs the variant of the command line. */
    void run(Runnable setup, Runnable oneStatement, Runnable transaction) throws Exception {
        if (variant.equals("setup")) setup.run();
        else repeat(variant.equals("transaction") ? transaction : oneStatement);
    }

    private void repeat(Runnable update) throws Exception {
        var done = new LongAdder();
        Callable<Void> worker = () -> {
            for (; !stopped; done.increment()) update.run();
            return null;
        };
        var threads = Executors.newFixedThreadPool(workers + 1);
        var measuring = threads.submit(() -> {
            Thread.sleep(WARM_UP_MILLIS);
            long before = done.sum(), started = System.nanoTime();
            Thread.sleep((long) (seconds * 1000));
            double perSecond = (done.sum() - before) * 1e9 / (System.nanoTime() - started);
            stopped = true;
            return perSecond;
        });
        for (var result : threads.invokeAll(Collections.nCopies(workers, worker))) result.get();
        threads.shutdown();
        System.out.printf(Locale.ROOT, "{\"updates\": %d, \"per_second\": %f}%n", done.sum(), measuring.get());
    }
}
