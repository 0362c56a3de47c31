import java.util.*;
import org.apache.kafka.common.protocol.types.*;

/** Prints the layouts of Kafka's own generated messages: a line a message and version; tag=name:type is a tagged field, ? may be null. */
public class Schemas {
    static String text(Type type) {
        if (type instanceof Schema schema) {
            List<String> parts = new ArrayList<>();
            for (BoundField field : schema.fields())
                if (field.def.type instanceof TaggedFields tagged)
                    tagged.fields().forEach((tag, one) -> parts.add(tag + "=" + one.name + ":" + text(one.type)));
                else
                    parts.add(field.def.name + ":" + text(field.def.type));
            return (schema instanceof NullableSchema ? "?{" : "{") + String.join(",", parts) + "}";
        }
        String plain = type.toString().replace("COMPACT_", "");
        return type.arrayElementType().map(item -> plain.substring(0, plain.indexOf("(")) + "(" + text(item) + ")").orElse(plain);
    }

    static String encoding(Schema schema) {
        return Arrays.stream(schema.fields()).anyMatch(field -> field.def.type instanceof TaggedFields) ? "flexible" : "plain";
    }

    public static void main(String[] names) throws Exception {
        for (String name : names) {
            Class<?> message = Class.forName("org.apache.kafka." + name);
            Schema[] schemas = (Schema[]) message.getField("SCHEMAS").get(null);
            for (int version = 0; version < schemas.length; version++)
                if (schemas[version] != null)
                    System.out.println(String.join(" ", message.getSimpleName(), "" + version, encoding(schemas[version]), text(schemas[version])));
        }
    }
}
