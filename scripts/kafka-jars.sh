#!/usr/bin/env bash
# Brings Apache Kafka's own tools, clients and broker from Maven Central, for the tests that compare with them.
# usage: scripts/kafka-jars.sh [version]    needs java and mvn; a second run returns at once
# They go to node_modules/.cache/kafka-<version>, one folder of jars: java -cp 'that folder/*' org.apache.kafka.tools...
set -euo pipefail

version="${1:-4.4.0}"
root="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
target="$root/node_modules/.cache/kafka-$version"

if [ -f "$target/.complete" ]; then
  exit 0
fi

project="$(mktemp -d)"
trap 'rm -rf "$project"' EXIT

cat >"$project/pom.xml" <<POM
<project xmlns="http://maven.apache.org/POM/4.0.0">
  <modelVersion>4.0.0</modelVersion>
  <groupId>rookery</groupId>
  <artifactId>kafka-jars</artifactId>
  <version>1</version>
  <dependencies>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka_2.13</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.kafka</groupId>
      <artifactId>kafka-tools</artifactId>
      <version>$version</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-slf4j-impl</artifactId>
      <version>2.24.3</version>
    </dependency>
    <dependency>
      <groupId>org.apache.logging.log4j</groupId>
      <artifactId>log4j-core</artifactId>
      <version>2.24.3</version>
    </dependency>
  </dependencies>
</project>
POM

echo "Downloading Apache Kafka $version (about 130 MB, once)"
mkdir -p "$target"
mvn --batch-mode --quiet --file "$project/pom.xml" \
  org.apache.maven.plugins:maven-dependency-plugin:3.6.1:copy-dependencies \
  -DincludeScope=runtime -DoutputDirectory="$target"
touch "$target/.complete"
echo "Apache Kafka $version is in $target: $(find "$target" -name '*.jar' | wc -l) jars"
