import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.util.*;
import java.util.stream.*;
import org.apache.lucene.analysis.standard.StandardAnalyzer;
import org.apache.lucene.document.*;
import org.apache.lucene.index.*;
import org.apache.lucene.search.*;
import org.apache.lucene.store.RAMDirectory;

/** Lucene indexes a tree of texts in memory, and searches it: FOLDER ROUNDS PACKAGE... */
public class Indexing {
    public static void main(String[] arguments) throws Exception {
        Path root = Paths.get(arguments[0]);
        List<String> texts = new ArrayList<>();
        for (String part : Arrays.asList(arguments).subList(2, arguments.length)) {
            List<Path> files;
            try (Stream<Path> tree = Files.walk(root.resolve(part))) {
                files = tree.filter(path -> path.toString().endsWith(".java")).sorted().collect(Collectors.toList());
            }
            for (Path file : files) texts.add(new String(Files.readAllBytes(file), StandardCharsets.UTF_8));
        }
        int found = 0;
        for (int round = 0; round < Integer.parseInt(arguments[1]); round++) {
            RAMDirectory folder = new RAMDirectory();
            try (IndexWriter writer = new IndexWriter(folder, new IndexWriterConfig(org.apache.lucene.util.Version.LATEST, new StandardAnalyzer()))) {
                for (String text : texts) {
                    Document document = new Document();
                    document.add(new TextField("text", text, Field.Store.YES));
                    writer.addDocument(document);
                }
            }
            try (IndexReader reader = DirectoryReader.open(folder)) {
                IndexSearcher searcher = new IndexSearcher(reader);
                for (String word : "list map array null stream buffer thread lock time zone".split(" ")) {
                    for (ScoreDoc hit : searcher.search(new TermQuery(new Term("text", word)), 50).scoreDocs) {
                        found += searcher.doc(hit.doc).get("text").length() & 1;
                    }
                }
            }
        }
        System.setProperty("found", "" + found);
    }
}
