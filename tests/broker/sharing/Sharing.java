import java.time.Duration;
import java.util.*;
import java.util.concurrent.ExecutionException;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/** A share group reads a topic and rejects every fourth record, into a dead letter queue where it has one; then prints what Kafka says of it. */
public class Sharing {
    public static void main(String[] words) throws Exception {
        String bootstrap = words[0], group = words[1], topic = words[2], queue = words.length > 4 ? words[4] : "";
        int wanted = Integer.parseInt(words[3]);
        Map<String, Object> client = Map.of("bootstrap.servers", bootstrap);
        try (Admin admin = Admin.create(client)) {
            List<AlterConfigOp> settings = new ArrayList<>();
            settings.add(new AlterConfigOp(new ConfigEntry("share.auto.offset.reset", "earliest"), AlterConfigOp.OpType.SET));
            if (!queue.isEmpty())
                settings.add(new AlterConfigOp(new ConfigEntry("errors.deadletterqueue.topic.name", queue), AlterConfigOp.OpType.SET));
            admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, group), settings)).all().get();
            Map<String, Object> consumer = Map.of("bootstrap.servers", bootstrap, "group.id", group, "share.acknowledgement.mode", "explicit");
            int taken = 0;
            try (ShareConsumer<byte[], byte[]> reading = new KafkaShareConsumer<>(consumer, new ByteArrayDeserializer(), new ByteArrayDeserializer())) {
                reading.subscribe(List.of(topic));
                while (taken < wanted) {
                    for (ConsumerRecord<byte[], byte[]> record : reading.poll(Duration.ofMillis(200)))
                        reading.acknowledge(record, taken++ % 4 == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
                    reading.commitSync();
                }
            }
            String before = "";
            for (String now = said(admin, group); !now.equals(before); now = said(admin, group)) {  // a queue is written after the answer
                before = now;
                Thread.sleep(500);
            }
            System.out.print(before);
        }
    }

    static String said(Admin admin, String group) throws ExecutionException, InterruptedException {
        StringBuilder lines = new StringBuilder();
        admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get().forEach((at, offset) -> {
            if (offset != null)  // nothing was taken from that partition yet
                lines.append(String.join("\t", at.topic(), "" + at.partition(), "" + offset.startOffset(), "" + offset.lag().orElse(-1L))).append("\n");
        });
        return lines.toString();
    }
}
