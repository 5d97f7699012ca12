// Shows the payments' events as they come out of Kafka, each once: a line with id, aggregate, type and payload, between tabs.
// Delivery is at least once, so an id that was seen before is counted and not shown. Ends after as many events as are asked for.

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
    /** An event comes again when Connect or Kafka has crashed, soon after its first time: so many ids are remembered. */
    private static final int REMEMBERED = 1_000_000;

    public static void main(String[] arguments) {
        long wanted = arguments.length > 1 ? Long.parseLong(arguments[1]) : Long.MAX_VALUE;
        var settings = new Properties();
        settings.put("bootstrap.servers", arguments[0]);
        // A group of its own: each start shows the whole stream. One that keeps what it has read would keep its group, and the
        // ids it has seen together with what it made of them.
        settings.put("group.id", "payments-" + UUID.randomUUID());
        settings.put("auto.offset.reset", "earliest");
        settings.put("enable.auto.commit", "false");
        // A topic appears with its first event.
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
