import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.Future;
import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.clients.producer.RecordMetadata;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Batches exactly as they are asked for, in transactions or outside of them. */
class Writing {
    private final String brokers;
    private final Map<String, KafkaProducer<byte[], byte[]>> plain = new HashMap<>();
    private final Map<String, KafkaProducer<byte[], byte[]>> transactional = new HashMap<>();

    Writing(String brokers) {
        this.brokers = brokers;
    }

    /**
     * "topic", "partition", "codec"; "transaction": a transactional id, or absent; "batches": lists of records [key or null, bytes of the
     * value or -1 for null, timestamp or null]. Returns the first offset of each batch.
     */
    List<Long> produce(JsonNode request) throws Exception {
        KafkaProducer<byte[], byte[]> producer = producer(request);
        List<Long> offsets = new ArrayList<>();
        for (JsonNode batch : request.get("batches")) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (JsonNode record : batch) {
                sent.add(producer.send(record(request, record)));
            }
            producer.flush();  // nothing is sent before: a flush makes one batch
            for (Future<RecordMetadata> each : sent) {
                each.get();
            }
            offsets.add(sent.get(0).get().offset());
        }
        return offsets;
    }

    /** "transaction". */
    boolean begin(JsonNode request) {
        transactional.computeIfAbsent(request.get("transaction").asText(), this::initialised).beginTransaction();
        return true;
    }

    /** "transaction", "group", "offsets": rows of [topic, partition, offset]. */
    boolean commit(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = Committing.offsets(request.get("offsets"));
        transactional.get(request.get("transaction").asText())
            .sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(request.get("group").asText()));
        return true;
    }

    /** "transaction", "commit". */
    boolean end(JsonNode request) {
        KafkaProducer<byte[], byte[]> producer = transactional.get(request.get("transaction").asText());
        if (request.get("commit").asBoolean()) {
            producer.commitTransaction();
        } else {
            producer.abortTransaction();
        }
        return true;
    }

    private KafkaProducer<byte[], byte[]> producer(JsonNode request) {
        JsonNode transaction = request.get("transaction");
        if (transaction != null && !transaction.isNull()) {
            return transactional.get(transaction.asText());
        }
        return plain.computeIfAbsent(request.get("codec").asText(), codec -> made(codec, Map.of()));
    }

    private KafkaProducer<byte[], byte[]> initialised(String id) {
        KafkaProducer<byte[], byte[]> producer = made("lz4", Map.of("transactional.id", id, "transaction.timeout.ms", 600_000));
        producer.initTransactions();
        return producer;
    }

    private KafkaProducer<byte[], byte[]> made(String codec, Map<String, Object> more) {
        Map<String, Object> settings = new HashMap<>(more);
        settings.put("bootstrap.servers", brokers);
        settings.put("compression.type", codec);
        settings.put("linger.ms", 60_000);
        settings.put("delivery.timeout.ms", 600_000);
        settings.put("batch.size", 900_000);
        return new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer());
    }

    private static ProducerRecord<byte[], byte[]> record(JsonNode request, JsonNode record) {
        byte[] key = record.get(0).isNull() ? null : record.get(0).asText().getBytes(StandardCharsets.UTF_8);
        byte[] value = record.get(1).asInt() < 0 ? null : "v".repeat(record.get(1).asInt()).getBytes(StandardCharsets.UTF_8);
        Long timestamp = record.get(2).isNull() ? null : record.get(2).asLong();
        return new ProducerRecord<>(request.get("topic").asText(), request.get("partition").asInt(), timestamp, key, value);
    }
}
