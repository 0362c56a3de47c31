import com.fasterxml.jackson.databind.JsonNode;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.AlterConfigOp;
import org.apache.kafka.clients.admin.ConfigEntry;
import org.apache.kafka.clients.admin.NewPartitionReassignment;
import org.apache.kafka.clients.admin.NewPartitions;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.admin.RecordsToDelete;
import org.apache.kafka.clients.consumer.AcknowledgeType;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaShareConsumer;
import org.apache.kafka.clients.consumer.OffsetAndMetadata;
import org.apache.kafka.common.ElectionType;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.TopicPartitionReplica;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** What becomes of groups, of topics, and of logs. */
class Working {
    private final String brokers;
    private final Admin admin;
    private final Map<String, KafkaShareConsumer<byte[], byte[]>> sharers = new HashMap<>();

    Working(String brokers, Admin admin) {
        this.brokers = brokers;
        this.admin = admin;
    }

    /** "group", "topic": a share group gets some records within a moment, and is done with them. Returns how many. */
    int share(JsonNode request) throws Exception {
        String group = request.get("group").asText();
        if (!sharers.containsKey(group)) {
            sharers.put(group, sharer(group, request.get("topic").asText()));
        }
        KafkaShareConsumer<byte[], byte[]> sharer = sharers.get(group);
        int count = 0;
        for (ConsumerRecord<byte[], byte[]> record : sharer.poll(Duration.ofMillis(500))) {
            sharer.acknowledge(record, count++ % 5 == 3 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
        }
        sharer.commitSync();
        return count;
    }

    private KafkaShareConsumer<byte[], byte[]> sharer(String group, String topic) throws Exception {
        ConfigResource resource = new ConfigResource(ConfigResource.Type.GROUP, group);
        AlterConfigOp fromBegin = new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(resource, Set.of(fromBegin))).all().get();
        Map<String, Object> settings = new HashMap<>();
        settings.put("bootstrap.servers", brokers);
        settings.put("group.id", group);
        settings.put("max.poll.records", 20);
        settings.put("share.acknowledgement.mode", "explicit");
        settings.put("key.deserializer", ByteArrayDeserializer.class.getName());
        settings.put("value.deserializer", ByteArrayDeserializer.class.getName());
        KafkaShareConsumer<byte[], byte[]> made = new KafkaShareConsumer<>(settings);
        made.subscribe(Set.of(topic));
        return made;
    }

    /** "group", "topic", "partition": the coordinator deletes the group's offset there. */
    boolean forget(JsonNode request) throws Exception {
        admin.deleteConsumerGroupOffsets(request.get("group").asText(), Set.of(partition(request))).all().get();
        return true;
    }

    /** "group", which has no members, is deleted. */
    boolean delete(JsonNode request) throws Exception {
        admin.deleteConsumerGroups(Set.of(request.get("group").asText())).all().get();
        return true;
    }

    /** "group", which has no members; "offsets": [topic, partition, offset]. */
    boolean reset(JsonNode request) throws Exception {
        Map<TopicPartition, OffsetAndMetadata> offsets = new HashMap<>();
        for (JsonNode row : request.get("offsets")) {
            offsets.put(new TopicPartition(row.get(0).asText(), row.get(1).asInt()), new OffsetAndMetadata(row.get(2).asLong()));
        }
        admin.alterConsumerGroupOffsets(request.get("group").asText(), offsets).all().get();
        return true;
    }

    /** "topic", "partition", "replicas": brokers, of which the first one is to lead. It leads already where that needs no copying. */
    boolean move(JsonNode request) throws Exception {
        TopicPartition partition = partition(request);
        List<Integer> replicas = new ArrayList<>();
        request.get("replicas").forEach(each -> replicas.add(each.asInt()));
        admin.alterPartitionReassignments(Map.of(partition, Optional.of(new NewPartitionReassignment(replicas)))).all().get();
        admin.electLeaders(ElectionType.PREFERRED, Set.of(partition)).partitions().get();
        return true;
    }

    /** "topic", "partitions", "copies", "configs". */
    boolean create(JsonNode request) throws Exception {
        Map<String, String> configs = new HashMap<>();
        request.get("configs").fields().forEachRemaining(each -> configs.put(each.getKey(), each.getValue().asText()));
        short copies = (short) request.get("copies").asInt();
        admin.createTopics(Set.of(new NewTopic(request.get("topic").asText(), request.get("partitions").asInt(), copies).configs(configs))).all().get();
        return true;
    }

    /** "topic" is deleted. */
    boolean remove(JsonNode request) throws Exception {
        admin.deleteTopics(Set.of(request.get("topic").asText())).all().get();
        return true;
    }

    /** "topic", "partitions": it has more than before. */
    boolean expand(JsonNode request) throws Exception {
        admin.createPartitions(Map.of(request.get("topic").asText(), NewPartitions.increaseTo(request.get("partitions").asInt()))).all().get();
        return true;
    }

    /** "topic", "partition", "before": an offset, -1 for the end. */
    boolean truncate(JsonNode request) throws Exception {
        RecordsToDelete before = RecordsToDelete.beforeOffset(request.get("before").asLong());
        admin.deleteRecords(Map.of(partition(request), before)).all().get();
        return true;
    }

    /** "topic", "partition", "broker", "log_dir": its replica is to go there. */
    boolean rehouse(JsonNode request) throws Exception {
        TopicPartition of = partition(request);
        TopicPartitionReplica replica = new TopicPartitionReplica(of.topic(), of.partition(), request.get("broker").asInt());
        admin.alterReplicaLogDirs(Map.of(replica, request.get("log_dir").asText())).all().get();
        return true;
    }

    private static TopicPartition partition(JsonNode request) {
        return new TopicPartition(request.get("topic").asText(), request.get("partition").asInt());
    }
}
