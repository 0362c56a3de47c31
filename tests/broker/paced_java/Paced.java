import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.Properties;
import java.util.Random;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** Sends the same records at the same pace whatever the producer's settings: BOOTSTRAP TOPIC PARTITIONS KIND COUNT RATE NAME=VALUE... */
public final class Paced {
    private static final String[] WORDS = ("request accepted by gateway timeout while reading from upstream server connection closed retry "
        + "user session started finished with status cache miss for key lookup took ms bytes sent to client checkout payment").split(" ");

    private static final Random RANDOM = new Random(7);

    public static void main(String[] args) throws Exception {
        Properties config = new Properties();
        config.put("bootstrap.servers", args[0]);
        for (int i = 6; i < args.length; i++) {
            config.put(args[i].substring(0, args[i].indexOf('=')), args[i].substring(args[i].indexOf('=') + 1));
        }
        int partitions = Integer.parseInt(args[2]);
        int count = Integer.parseInt(args[4]);
        double rate = Double.parseDouble(args[5]);
        try (KafkaProducer<byte[], byte[]> producer = new KafkaProducer<>(config, new ByteArraySerializer(), new ByteArraySerializer())) {
            producer.partitionsFor(args[1]);
            double due = System.nanoTime();
            for (int i = 0; i < count; i++) {
                byte[] key = ("c" + RANDOM.nextInt(20000)).getBytes(StandardCharsets.UTF_8);
                byte[] value = value(args[3], i);
                int partition = RANDOM.nextInt(partitions);
                due += -Math.log(1 - RANDOM.nextDouble()) * 1e9 / rate;
                for (long wait = (long) due - System.nanoTime(); wait > 0; wait = (long) due - System.nanoTime()) {
                    LockSupport.parkNanos(wait);
                }
                producer.send(new ProducerRecord<>(args[1], partition, key, value));
            }
        }
    }

    private static byte[] value(String kind, int number) {
        switch (kind) {
            case "orders":
                return String.format("{\"order_id\":%d,\"customer\":\"c-%06d\",\"status\":\"%s\",\"amount\":%.2f,\"currency\":\"EUR\","
                    + "\"sku\":\"SKU-%05d\",\"quantity\":%d,\"shop\":\"web\",\"shipping\":{\"country\":\"%s\",\"express\":%b}}",
                    100000 + number, RANDOM.nextInt(1000000), WORDS[RANDOM.nextInt(4)], RANDOM.nextDouble() * 500, RANDOM.nextInt(5000),
                    1 + RANDOM.nextInt(5), new String[] {"DE", "FR", "AT", "CH"}[RANDOM.nextInt(4)], RANDOM.nextBoolean())
                    .getBytes(StandardCharsets.UTF_8);
            case "avro": // the wire format of a schema registry, then longs, doubles and an enum
                ByteBuffer made = ByteBuffer.allocate(59);
                made.put((byte) 0).putInt(42).putLong(1700000000000L + number * 13L).putInt(RANDOM.nextInt(50000));
                made.putDouble(Math.round(RANDOM.nextGaussian() * 100) / 4.0).putDouble(48 + RANDOM.nextInt(1000) / 1000.0);
                made.putDouble(11 + RANDOM.nextInt(1000) / 1000.0).put((byte) RANDOM.nextInt(6)).putLong(RANDOM.nextInt(100)).putLong(0);
                made.put((byte) 2);
                return made.array();
            case "logs":
                StringBuilder line = new StringBuilder(String.format("2026-11-30T%02d:%02d:%02d.%03dZ %s [worker-%d] ", RANDOM.nextInt(24),
                    RANDOM.nextInt(60), RANDOM.nextInt(60), RANDOM.nextInt(1000), RANDOM.nextInt(9) == 0 ? "WARN" : "INFO",
                    RANDOM.nextInt(16)));
                for (int words = 6 + RANDOM.nextInt(20); words > 0; words--) {
                    line.append(WORDS[RANDOM.nextInt(WORDS.length)]).append(' ');
                }
                return line.append("id=").append(Long.toHexString(RANDOM.nextLong())).toString().getBytes(StandardCharsets.UTF_8);
            default: // encrypted
                byte[] bytes = new byte[400];
                RANDOM.nextBytes(bytes);
                return bytes;
        }
    }
}
