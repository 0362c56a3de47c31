import java.util.ArrayList;
import java.util.Collection;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.GroupListing;
import org.apache.kafka.clients.admin.ListConsumerGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListOffsetsOptions;
import org.apache.kafka.clients.admin.ListOffsetsResult.ListOffsetsResultInfo;
import org.apache.kafka.clients.admin.ListShareGroupOffsetsSpec;
import org.apache.kafka.clients.admin.ListTopicsOptions;
import org.apache.kafka.clients.admin.OffsetSpec;
import org.apache.kafka.clients.admin.TopicDescription;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.GroupType;
import org.apache.kafka.common.IsolationLevel;
import org.apache.kafka.common.TopicPartition;

/** What brokers say of groups, their offsets, and the ends of partitions. */
class Telling {
    private final Admin admin;

    Telling(Admin admin) {
        this.admin = admin;
    }

    /** Rows of [group, type, protocol, state]. */
    List<List<String>> groups() throws Exception {
        List<List<String>> rows = new ArrayList<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            String type = each.type().map(GroupType::toString).orElse("");
            rows.add(List.of(each.groupId(), type, each.protocol(), each.groupState().map(Object::toString).orElse("")));
        }
        return rows;
    }

    /** Rows of [group, topic, partition, offset, lag]; of a share group the offset is where it starts, others have lag -1. */
    List<List<Object>> commits() throws Exception {
        Map<String, ListConsumerGroupOffsetsSpec> consumers = new HashMap<>();
        Map<String, ListShareGroupOffsetsSpec> sharers = new HashMap<>();
        for (GroupListing each : admin.listGroups().all().get()) {
            if (each.type().filter(GroupType.SHARE::equals).isPresent()) {
                sharers.put(each.groupId(), new ListShareGroupOffsetsSpec());
            } else {
                consumers.put(each.groupId(), new ListConsumerGroupOffsetsSpec());
            }
        }
        List<List<Object>> rows = new ArrayList<>();
        if (!consumers.isEmpty()) {
            admin.listConsumerGroupOffsets(consumers).all().get().forEach((group, offsets) -> offsets.forEach((where, offset) -> {
                if (offset != null) {
                    rows.add(List.of(group, where.topic(), where.partition(), offset.offset(), -1L));
                }
            }));
        }
        if (!sharers.isEmpty()) {
            admin.listShareGroupOffsets(sharers).all().get().forEach((group, offsets) -> offsets.forEach((where, info) -> {
                if (info != null) {
                    rows.add(List.of(group, where.topic(), where.partition(), info.startOffset(), info.lag().orElseThrow()));
                }
            }));
        }
        return rows;
    }

    /** Rows of [topic, partition, log start, high watermark, last stable offset] of every partition that has a leader. */
    List<List<Object>> ends() throws Exception {
        List<TopicPartition> partitions = new ArrayList<>();
        Collection<String> topics = admin.listTopics(new ListTopicsOptions().listInternal(true)).names().get();
        for (TopicDescription topic : admin.describeTopics(topics).allTopicNames().get().values()) {
            topic.partitions().stream().filter(each -> each.leader() != null)
                .forEach(each -> partitions.add(new TopicPartition(topic.name(), each.partition())));
        }
        var starts = list(partitions, OffsetSpec.earliest(), IsolationLevel.READ_UNCOMMITTED);
        var ends = list(partitions, OffsetSpec.latest(), IsolationLevel.READ_UNCOMMITTED);
        var stable = list(partitions, OffsetSpec.latest(), IsolationLevel.READ_COMMITTED);
        List<List<Object>> rows = new ArrayList<>();
        for (TopicPartition each : partitions) {
            rows.add(List.of(each.topic(), each.partition(), starts.get(each), ends.get(each), stable.get(each)));
        }
        return rows;
    }

    private Map<TopicPartition, Long> list(List<TopicPartition> partitions, OffsetSpec which, IsolationLevel isolation) throws Exception {
        Map<TopicPartition, OffsetSpec> asked = new HashMap<>();
        partitions.forEach(each -> asked.put(each, which));
        Map<TopicPartition, Long> found = new HashMap<>();
        for (Map.Entry<TopicPartition, ListOffsetsResultInfo> each : admin.listOffsets(asked, new ListOffsetsOptions(isolation)).all().get().entrySet()) {
            found.put(each.getKey(), each.getValue().offset());
        }
        return found;
    }
}
