import java.sql.*;
import java.util.*;

/** A mail archive in H2, in memory: so many letters come, each with an attachment of 550 KB, and the oldest goes when there are more than KEPT: LETTERS KEPT [parts]. */
public class Attachments {
    static final int BYTES = 550_000, PART = 64_000;

    public static void main(String[] arguments) throws Exception {
        int letters = Integer.parseInt(arguments[0]), kept = Integer.parseInt(arguments[1]);
        boolean parts = arguments.length > 2;
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:mail;MAX_LENGTH_INPLACE_LOB=1000000")) {
            Statement statement = connection.createStatement();
            statement.execute("create table attachments(letter int, part int, content varbinary(1000000), primary key(letter, part))");
            PreparedStatement insert = connection.prepareStatement("insert into attachments values(?, ?, ?)");
            PreparedStatement delete = connection.prepareStatement("delete from attachments where letter = ?");
            Own.watch(() -> {
                for (int letter = 0; letter < letters; letter++) {
                    for (int part = 0, left = BYTES; left > 0; part++) {
                        int size = parts ? Math.min(PART, left) : left;
                        insert.setInt(1, letter);
                        insert.setInt(2, part);
                        insert.setBytes(3, new byte[size]);
                        insert.execute();
                        left -= size;
                    }
                    delete.setInt(1, letter - kept);
                    delete.execute();
                }
                return "";
            });
        }
    }
}
