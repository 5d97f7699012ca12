// Prints the payments' events from Kafka, each once: a line with ID, aggregate, type and payload, separated by tabs.
// Delivery is at least once, so an event with a known ID is counted and not printed. Ends after the requested number of
// events.

import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.Map;
import java.util.Properties;
import java.util.UUID;
import java.util.regex.Pattern;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.StringDeserializer;

public final class Consumer {
    /** After a crash of Connect or Kafka, an event is repeated soon after its first time. This number of IDs is remembered. */
    private static final int REMEMBERED = 1_000_000;

    public static void main(String[] arguments) {
        long wanted = arguments.length > 1 ? Long.parseLong(arguments[1]) : Long.MAX_VALUE;
        var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        // Each start has a new group and prints the whole stream. A consumer that stores events would keep its group, and
        // would store the known IDs together with the events.
        settings.put("group.id", "payments-" + UUID.randomUUID());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        // A topic exists after its first event.
        settings.put("metadata.max.age.ms", "500");
        var seen = new LinkedHashMap<String, Boolean>() {
            @Override
            protected boolean removeEldestEntry(Map.Entry<String, Boolean> eldest) {
                return size() > REMEMBERED;
            }
        };
        long shown = 0, again = 0;
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.subscribe(Pattern.compile("outbox\\.event\\..*"));
            while (shown < wanted) {
                for (var event : consumer.poll(Duration.ofMillis(200))) {
                    String id = header(event, "id");
                    if (seen.put(id, true) != null) {
                        again++;
                        continue;
                    }
                    String kind = event.topic().substring("outbox.event.".length());
                    System.out.println(String.join("\t", id, kind + "/" + event.key(), header(event, "type"), event.value()));
                    shown++;
                }
                System.out.flush();
            }
        }
        System.err.println(shown + " events, " + again + " of them came again and are not shown twice");
    }

    private static String header(ConsumerRecord<String, String> event, String name) {
        var header = event.headers().lastHeader(name);
        return header == null ? "" : new String(header.value(), StandardCharsets.UTF_8);
    }
}
