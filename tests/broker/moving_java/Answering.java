import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.DescribeProducersOptions;
import org.apache.kafka.clients.admin.DescribeTopicsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsOptions;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.SharePartitionOffsetInfo;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.KafkaFuture;
import org.apache.kafka.common.TopicCollection;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionInfo;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.errors.UnknownTopicOrPartitionException;

/** What the coordinators of some groups answer, and the leaders of some partitions, each for itself. */
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

    /**
     * "topics": names; "most": so many partitions a topic has at most; "patience_ms". By topic and partition of what there is and answers in
     * time: log start, high watermark, last stable offset, how many transactions are open, and the largest producer id of these. What there
     * is not has an empty row.
     */
    Map<String, List<Long>> endsOf(JsonNode request) throws Exception {
        int patience = request.get("patience_ms").asInt();
        List<String> topics = new ArrayList<>();
        request.get("topics").forEach(each -> topics.add(each.asText()));
        Map<String, List<Long>> answered = new HashMap<>();
        List<TopicPartition> led = new ArrayList<>();
        var described = admin.describeTopics(TopicCollection.ofTopicNames(topics), new DescribeTopicsOptions().timeoutMs(patience));
        for (Map.Entry<String, KafkaFuture<TopicDescription>> each : described.topicNameValues().entrySet()) {
            List<TopicPartitionInfo> partitions = List.of();
            try {
                partitions = each.getValue().get().partitions();
            } catch (ExecutionException error) {
                if (!(error.getCause() instanceof UnknownTopicOrPartitionException)) {
                    continue;
                }
            }
            for (int number = partitions.size(); number < request.get("most").asInt(); number++) {
                answered.put(each.getKey() + "-" + number, List.of());
            }
            partitions.stream().filter(info -> info.leader() != null)
                .forEach(info -> led.add(new TopicPartition(each.getKey(), info.partition())));
        }
        var starts = offsets(led, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED, patience);
        var ends = offsets(led, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED, patience);
        var stable = offsets(led, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED, patience);
        var producers = admin.describeProducers(led, new DescribeProducersOptions().timeoutMs(patience));
        for (TopicPartition each : led) {
            try {
                List<Long> open = producers.partitionResult(each).get().activeProducers().stream()
                    .filter(producer -> producer.currentTransactionStartOffset().isPresent()).map(producer -> producer.producerId()).toList();
                answered.put(each.topic() + "-" + each.partition(), List.of(
                    starts.partitionResult(each).get().offset(), ends.partitionResult(each).get().offset(),
                    stable.partitionResult(each).get().offset(), (long) open.size(), open.stream().mapToLong(id -> id).max().orElse(-1)));
            } catch (ExecutionException error) {
                continue; // its leader is moving, or it has just been deleted
            }
        }
        return answered;
    }

    private ListOffsetsResult offsets(List<TopicPartition> partitions, OffsetSpec which, IsolationLevel isolation, int patience) {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        partitions.forEach(each -> asked.put(each, which));
        return admin.listOffsets(asked, new ListOffsetsOptions(isolation).timeoutMs(patience));
    }
}
