import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;

/** What the coordinators of some groups answer, each for itself. */
class Answering {
    private final Admin admin;

    Answering(Admin admin) {
        this.admin = admin;
    }

    /**
     * "groups", "sharers": names; "patience_ms". By name of those whose coordinators answer in time, rows of [topic, partition, offset]. A
     * group that does not exist has none.
     */
    Map<String, List<List<Object>>> commitsOf(JsonNode request) throws Exception {
        int patience = request.get("patience_ms").asInt();
        Map<String, KafkaFuture<?>> asked = new HashMap<>();
        Map<String, ListConsumerGroupOffsetsSpec> consumers = new HashMap<>();
        request.get("groups").forEach(each -> consumers.put(each.asText(), new ListConsumerGroupOffsetsSpec()));
        var offsets = admin.listConsumerGroupOffsets(consumers, new ListConsumerGroupOffsetsOptions().timeoutMs(patience));
        consumers.keySet().forEach(group -> asked.put(group, offsets.partitionsToOffsetAndMetadata(group)));
        Map<String, ListShareGroupOffsetsSpec> sharers = new HashMap<>();
        request.get("sharers").forEach(each -> sharers.put(each.asText(), new ListShareGroupOffsetsSpec()));
        if (!sharers.isEmpty()) {
            var starts = admin.listShareGroupOffsets(sharers, new ListShareGroupOffsetsOptions().timeoutMs(patience));
            sharers.keySet().forEach(group -> asked.put(group, starts.partitionsToOffsetInfo(group)));
        }
        Map<String, List<List<Object>>> answered = new HashMap<>();
        for (Map.Entry<String, KafkaFuture<?>> each : asked.entrySet()) {
            try {
                answered.put(each.getKey(), rows((Map<?, ?>) each.getValue().get()));
            } catch (ExecutionException error) {
                if (error.getCause() instanceof GroupIdNotFoundException) {
                    answered.put(each.getKey(), List.of());
                } // else its coordinator is moving
            }
        }
        return answered;
    }

    private static List<List<Object>> rows(Map<?, ?> offsets) {
        List<List<Object>> rows = new ArrayList<>();
        offsets.forEach((where, of) -> {
            TopicPartition partition = (TopicPartition) where;
            if (of instanceof OffsetAndMetadata committed) {
                rows.add(List.of(partition.topic(), partition.partition(), committed.offset()));
            } else if (of instanceof SharePartitionOffsetInfo started) {
                rows.add(List.of(partition.topic(), partition.partition(), started.startOffset()));
            }
        });
        return rows;
    }
}
