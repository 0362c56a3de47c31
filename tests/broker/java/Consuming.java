import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.ConsumerRecords;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.consumer.OffsetOutOfRangeException;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** Consumes for real from given offsets to the end, and counts what comes. */
class Consuming {
    private static final int IDLE_POLLS = 4;
    private final String brokers;
    private final Map<String, KafkaConsumer<byte[], byte[]>> consumers = new HashMap<>();

    Consuming(String brokers) {
        this.brokers = brokers;
    }

    /** What came from one offset on. */
    private static class Count {
        final int row;
        final TopicPartition partition;
        final long from;
        long records;
        long firstOffset = -1;
        long firstTimestamp = -1;

        Count(int row, JsonNode asked) {
            this.row = row;
            partition = Lab.partition(asked);
            from = asked.get(2).asLong();
        }

        void take(ConsumerRecord<byte[], byte[]> record) {
            if (records++ == 0) {
                firstOffset = record.offset();
                firstTimestamp = record.timestamp();
            }
        }
    }

    /**
     * "isolation"; "from": rows of [topic, partition, offset]. An offset before the log start is read from there on. Returns for each row
     * [records, offset of the first one, its timestamp]; records is -1 where the broker says that the offset is out of range.
     */
    List<List<Long>> consume(JsonNode request) {
        KafkaConsumer<byte[], byte[]> consumer = consumers.computeIfAbsent(request.get("isolation").asText(), this::made);
        List<Count> left = new ArrayList<>();
        for (JsonNode row : request.get("from")) {
            left.add(new Count(left.size(), row));
        }
        List<List<Long>> answers = new ArrayList<>();
        left.forEach(each -> answers.add(null));
        while (!left.isEmpty()) {
            Map<TopicPartition, Count> round = new LinkedHashMap<>();
            left.removeIf(each -> round.putIfAbsent(each.partition, each) == null);  // a partition comes once in a round
            read(consumer, round);
            round.values().forEach(each -> answers.set(each.row, List.of(each.records, each.firstOffset, each.firstTimestamp)));
        }
        return answers;
    }

    private static void read(KafkaConsumer<byte[], byte[]> consumer, Map<TopicPartition, Count> round) {
        Map<TopicPartition, Long> starts = consumer.beginningOffsets(round.keySet());
        Map<TopicPartition, Long> ends = consumer.endOffsets(round.keySet());  // of what this isolation may read
        List<TopicPartition> before = new ArrayList<>();
        List<TopicPartition> after = new ArrayList<>();
        round.forEach((where, count) -> (count.from <= ends.get(where) ? before : after).add(where));
        consumer.assign(before);
        before.forEach(where -> consumer.seek(where, Math.max(round.get(where).from, starts.get(where))));
        int idle = 0;  // a log whose tail is compacted away brings nothing more after its last record
        long reached = -1;
        while (idle < IDLE_POLLS && before.stream().anyMatch(each -> consumer.position(each) < ends.get(each))) {
            ConsumerRecords<byte[], byte[]> records = consumer.poll(Duration.ofMillis(250));
            long position = before.stream().mapToLong(consumer::position).sum();
            idle = position == reached ? idle + 1 : 0;
            reached = position;
            for (ConsumerRecord<byte[], byte[]> record : records) {
                TopicPartition where = new TopicPartition(record.topic(), record.partition());
                if (record.offset() < ends.get(where)) {
                    round.get(where).take(record);
                }
            }
        }
        after.forEach(where -> readAfterEnd(consumer, round.get(where)));
    }

    /** Behind the last stable offset there is nothing to read for now; behind the high watermark is no offset to read from. */
    private static void readAfterEnd(KafkaConsumer<byte[], byte[]> consumer, Count count) {
        consumer.assign(List.of(count.partition));
        consumer.seek(count.partition, count.from);
        try {
            for (int idle = 0; idle < IDLE_POLLS; idle++) {
                consumer.poll(Duration.ofMillis(60)).forEach(count::take);
            }
        } catch (OffsetOutOfRangeException refused) {
            count.records = -1;
        }
    }

    private KafkaConsumer<byte[], byte[]> made(String isolation) {
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", brokers);
        settings.put("isolation.level", isolation);
        settings.put("enable.auto.commit", false);
        settings.put("auto.offset.reset", "none");
        settings.put("max.poll.records", 100_000);
        settings.put("fetch.max.wait.ms", 30);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }
}
