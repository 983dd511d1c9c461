import java.sql.*;
import java.util.*;

/** H2 in memory: a table of orders is filled, changed and asked: ROWS ROUNDS. */
public class Querying {
    public static void main(String[] arguments) throws Exception {
        int rows = Integer.parseInt(arguments[0]);
        Random random = new Random(1);
        try (Connection connection = DriverManager.getConnection("jdbc:h2:mem:orders")) {
            Statement statement = connection.createStatement();
            statement.execute("create table orders(id int primary key, client int, article varchar, price double)");
            statement.execute("create index by_client on orders(client)");
            PreparedStatement insert = connection.prepareStatement("insert into orders values(?, ?, ?, ?)");
            for (int row = 0; row < rows; row++) {
                insert.setInt(1, row);
                insert.setInt(2, random.nextInt(rows / 20));
                insert.setString(3, "article " + row % 997);
                insert.setDouble(4, random.nextDouble() * 100);
                insert.execute();
            }
            PreparedStatement update = connection.prepareStatement("update orders set price = price * 1.01 where client = ?");
            PreparedStatement sum = connection.prepareStatement("select sum(price), count(*) from orders where client = ?");
            for (int round = 0; round < Integer.parseInt(arguments[1]); round++) {
                update.setInt(1, random.nextInt(rows / 20));
                update.execute();
                sum.setInt(1, random.nextInt(rows / 20));
                try (ResultSet result = sum.executeQuery()) { result.next(); }
                if (round % 2000 == 0) {
                    try (ResultSet result = statement.executeQuery("select article, sum(price) total from orders group by article order by total desc")) {
                        while (result.next()) { result.getDouble(2); }
                    }
                }
            }
        }
    }
}
