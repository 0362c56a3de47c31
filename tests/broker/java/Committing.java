import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Groups of every kind, which commit the offsets that they are told to. */
class Committing {
    private static final long PATIENCE_MS = 600_000;
    private final String brokers;
    private final Admin admin;
    private final Map<String, KafkaConsumer<byte[], byte[]>> members = new HashMap<>();
    private final Map<String, KafkaShareConsumer<byte[], byte[]>> sharers = new HashMap<>();

    Committing(String brokers, Admin admin) {
        this.brokers = brokers;
        this.admin = admin;
    }

    static Map<TopicPartition, OffsetAndMetadata> offsets(JsonNode rows) {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode row : rows) {
            offsets.put(Lab.partition(row), new OffsetAndMetadata(row.get(2).asLong()));
        }
        return offsets;
    }

    /** "group", "kind": assign (has no members), or classic or consumer (a member, until `leave`); "offsets": [topic, partition, offset]. */
    boolean commit(JsonNode request) {
        String group = request.get("group").asText();
        Map<TopicPartition, OffsetAndMetadata> offsets = offsets(request.get("offsets"));
        if (request.get("kind").asText().equals("assign")) {
            try (KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(group, "classic"))) {
                consumer.assign(offsets.keySet());
                consumer.commitSync(offsets);
            }
            return true;
        }
        members.computeIfAbsent(group, name -> joined(request, offsets.keySet())).commitSync(offsets);
        return true;
    }

    /** "group": its member leaves. */
    boolean leave(JsonNode request) {
        String group = request.get("group").asText();
        if (members.containsKey(group)) {
            members.remove(group).close();
        } else {
            sharers.remove(group).close();
        }
        return true;
    }

    /**
     * "group", "topic", "answers": what is done with each record in the order in which they come, a (accepted), x (rejected), r (released
     * once, then left), n (left unanswered). Returns [partition, offset] of all that came.
     */
    List<List<Long>> share(JsonNode request) throws Exception {
        String group = request.get("group").asText();
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        AlterConfigOp fromBegin = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, Set.of(fromBegin))).all().get();
        KafkaShareConsumer<byte[], byte[]> sharer = sharers.computeIfAbsent(group, name -> {
            Map<String, Object> settings = settings(group, null);
            settings.put("share.acknowledgement.mode", "explicit");
            KafkaShareConsumer<byte[], byte[]> made = new KafkaShareConsumer<>(settings);
            made.subscribe(Set.of(request.get("topic").asText()));
            return made;
        });
        String answers = request.get("answers").asText();
        List<List<Long>> came = new ArrayList<>();
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (came.size() < answers.length()) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("only " + came.size() + " records came");
            }
            for (ConsumerRecord<byte[], byte[]> record : sharer.poll(Duration.ofMillis(500))) {
                char answer = came.size() < answers.length() ? answers.charAt(came.size()) : 'r';
                sharer.acknowledge(record, switch (answer) {
                    case 'a' -> AcknowledgeType.ACCEPT;
                    case 'x' -> AcknowledgeType.REJECT;
                    default -> AcknowledgeType.RELEASE;
                });
                came.add(List.of((long) record.partition(), record.offset()));
            }
            sharer.commitSync();
        }
        return came;
    }

    private KafkaConsumer<byte[], byte[]> joined(JsonNode request, Set<TopicPartition> wanted) {
        KafkaConsumer<byte[], byte[]> consumer = new KafkaConsumer<>(settings(request.get("group").asText(), request.get("kind").asText()));
        Set<String> topics = new TreeSet<>();
        wanted.forEach(each -> topics.add(each.topic()));
        consumer.subscribe(topics);
        long deadline = System.currentTimeMillis() + PATIENCE_MS;
        while (!consumer.assignment().containsAll(wanted)) {
            if (System.currentTimeMillis() > deadline) {
                throw new IllegalStateException("the member was assigned " + consumer.assignment());
            }
            consumer.poll(Duration.ofMillis(100));
        }
        consumer.pause(consumer.assignment());
        return consumer;
    }

    private Map<String, Object> settings(String group, String protocol) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", brokers);
        settings.put("group.id", group);
        settings.put("client.id", "client-of-" + group.replace(" ", "-"));
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        if (protocol != null) {
            settings.put("group.protocol", protocol);
            settings.put("enable.auto.commit", false);
            settings.put("auto.offset.reset", "earliest");
        }
        return settings;
    }
}
